"""A trainer's own watchdog: it writes where a step stands that does not end, and nothing about steps that do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.dumps import where_in
from runner.watchdog import FIRST_S, LEAST_S, TIMES, Watchdog

REPO = str(Path(__file__).parent.parent.parent)

STORY = """
import sys, threading, time
sys.path.insert(0, {repo!r})
import runner.watchdog as watchdog
from pathlib import Path
watchdog.FIRST_S, watchdog.LEAST_S, watchdog.REARM_EVERY_S = {first}, {least}, 0.2
dog = watchdog.Watchdog(Path({path!r}))
dog.start()
lock = threading.Lock()
def deadlock():
    lock.acquire()
    lock.acquire(timeout=2.0)  # stands here
{body}
dog.close()
"""


def told(tmp_path: Path, body: str, first: float = 30.0, least: float = 0.5) -> str | None:
    """Return what the watchdog of a small process left; None: no file."""
    path = tmp_path / "stacks" / "standing-rank-0.txt"
    script = tmp_path / "train.py"
    script.write_text(STORY.format(repo=REPO, path=str(path), body=body, first=first, least=least))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return path.read_text() if path.exists() else None


def test_a_lock_that_is_never_given_back_is_told_with_its_line(tmp_path: Path) -> None:
    text = told(tmp_path, "dog.beat()\ndeadlock()")
    assert text is not None
    assert "in deadlock" in where_in(text)
    assert text.count("Timeout (") >= 2  # and again, for whoever wants to see that it still stands there


def test_code_that_keeps_the_interpreter_to_itself_is_told_too(tmp_path: Path) -> None:
    # A regular expression that backtracks holds the GIL in C: no thread of Python's could say where.
    body = 'import re\ndog.beat()\ndef stuck():\n    re.match("(a+)+$", "a" * 25 + "b")\nstuck()'
    text = told(tmp_path, body, least=0.2)
    assert text is not None
    assert "stuck" in text


def test_steps_that_end_leave_no_file(tmp_path: Path) -> None:
    assert told(tmp_path, "for _ in range(20):\n    time.sleep(0.1)\n    dog.beat()") is None


def test_a_long_first_step_is_no_news(tmp_path: Path) -> None:
    assert told(tmp_path, "time.sleep(1.5)\ndog.beat()") is None


def test_a_run_of_slow_steps_is_given_more_time(tmp_path: Path) -> None:
    seconds = iter([0.0, 100.0, 130.0, 190.0])
    dog = Watchdog(tmp_path / "w.txt", clock=lambda: next(seconds, 190.0))
    assert dog.limit_s == FIRST_S
    dog.beat()
    assert dog.limit_s == LEAST_S  # how long the first step took says nothing
    dog.beat()
    assert dog.limit_s == TIMES * 30
    dog.beat()
    assert dog.limit_s == TIMES * 60


def test_a_folder_that_cannot_be_written_is_said_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    dog = Watchdog(tmp_path / "file" / "standing.txt")
    dog.start()
    dog.beat()
    dog.close()
    assert "standing.txt" in capsys.readouterr().err
