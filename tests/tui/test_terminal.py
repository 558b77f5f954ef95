"""The real program in a real terminal (tmux), and what it sends to a terminal without colour."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.recorded import whole_run
from tests.tui.terminals import ROOT, Tmux, command, new_tmux

COLOUR = re.compile(rb"\x1b\[[0-9;]*?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38;[25]|48;[25])[0-9;]*m")


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    server = new_tmux(tmp_path_factory.mktemp("t"))
    yield server
    server.end()


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 48)])
def test_a_finished_run_is_seen_walked_and_left_in_tmux(
    tmux: Tmux, tmp_path: Path, columns: int, rows: int
) -> None:
    run = whole_run(tmp_path / "quickstart-1").run.path
    environment = ["env", f"PYTHONPATH={ROOT}", f"DOCTOR_RUNS={tmp_path}", "LC_ALL=C.UTF-8"]
    shell = shlex.join([*environment, *command(str(run))]) + "; echo left with $?; sleep 60"
    tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), shell)
    tmux.sees("quickstart-1", "completed", "step 100/100", "smoothed")
    tmux("send-keys", "Tab", "Tab")
    tmux.sees("__getitem__", "worker 4250")
    tmux("send-keys", "Escape")
    tmux.sees("runs: 1, newest first")
    tmux("send-keys", "?")
    tmux.sees("Leaving never ends a run")
    tmux("send-keys", "q")  # closes the help
    tmux.sees("runs: 1, newest first")
    tmux("send-keys", "q")
    tmux.sees("left with 0")


def test_detach_and_attach_at_another_size_leaves_the_screen_whole(tmux: Tmux, tmp_path: Path) -> None:
    run = whole_run(tmp_path / "quickstart-1").run.path
    frozen = ["COLUMNS=80", "LINES=24"]  # as a shell in a container often exports them
    shell = ["env", f"PYTHONPATH={ROOT}", "LC_ALL=C.UTF-8", *frozen, *command(str(run))]
    tmux("new-session", "-d", "-x", "160", "-y", "48", *shell)
    tmux.sees("completed", "GPU and host", "__getitem__")
    tmux("resize-window", "-x", "80", "-y", "24")
    text = tmux.sees("[Curves]", "smoothed", "q Quit")
    assert max(len(line) for line in text.splitlines()) <= 80


def sent_to_terminal(
    tmp_path: Path, until: bytes = b"smoothed", answer: bytes = b"", **variables: str
) -> bytes:
    """Run the program in a pseudo-terminal until it has drawn, quit it, and return every byte that it sent.

    ``answer`` is where the terminal says its cursor is.
    """
    import pty

    run = whole_run(tmp_path / "quickstart-1").run.path
    pid, fd = pty.fork()
    if pid == 0:  # the child: it becomes the program
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        os.execve(
            sys.executable,
            command(str(run)),
            {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
             "COLUMNS": "80", "LINES": "24", **variables},
        )  # fmt: skip
    sent = b""
    deadline = time.monotonic() + 30
    quit_sent = False
    while time.monotonic() < deadline:
        try:
            chunk = os.read(fd, 65536)
        except OSError:  # EIO: the child closed the terminal
            break
        if not chunk:
            break
        sent += chunk
        if answer and b"\x1b[6n" in chunk:
            os.write(fd, answer)
        if not quit_sent and until in sent:
            os.write(fd, b"q")
            quit_sent = True
    os.waitpid(pid, 0)
    os.close(fd)
    assert quit_sent, sent[-2000:]
    return sent


def test_with_no_color_not_one_colour_is_sent(tmp_path: Path) -> None:
    assert not COLOUR.search(sent_to_terminal(tmp_path, NO_COLOR="1"))


def test_with_colour_only_the_terminals_own_sixteen_are_used(tmp_path: Path) -> None:
    sent = sent_to_terminal(tmp_path, COLORTERM="truecolor")
    assert COLOUR.search(sent)
    assert not re.search(rb"\x1b\[[0-9;]*[34]8;[25];", sent)


def test_no_color_is_kept_for_the_runs_that_are_started_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from doctor.tui.app import DoctorApp
    from tests.tui.recorded import RecordedSource

    for value in ("1", ""):
        monkeypatch.setenv("NO_COLOR", value)
        app = DoctorApp(RecordedSource())
        assert os.environ["NO_COLOR"] == value
        assert app.no_color == bool(value)


def test_without_a_terminal_it_is_one_sentence_not_a_hang() -> None:
    done = subprocess.run(
        command(), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=ROOT
    )
    assert done.returncode != 0
    assert "needs a terminal, and stderr is none here" in done.stderr


THREE_COLUMNS, ONE_COLUMN = b"\x1b[1;4R", b"\x1b[1;2R"
"""Where the cursor is after one character of three bytes: taken for three characters, or for one."""


def test_a_terminal_that_takes_each_byte_for_a_character_gets_ascii_alone(tmp_path: Path) -> None:
    sent = sent_to_terminal(tmp_path, b"ASCII only", THREE_COLUMNS, LC_ALL="", LANG="C", DOCTOR_LANG="zh")
    drawn = sent.partition(b"\x1b[?1049h")[2]  # the probe stands before the other screen
    assert not re.findall(rb"[\x80-\xff]+.{0,20}", drawn)
    assert b"this terminal draws ASCII only" in drawn


def test_a_terminal_that_draws_it_gets_all_though_the_locale_says_nothing(tmp_path: Path) -> None:
    sent = sent_to_terminal(tmp_path, answer=ONE_COLUMN, LC_ALL="", LANG="C")
    assert "✓".encode() in sent
    assert b"ASCII only" not in sent


def test_no_terminal_is_left_reporting_what_a_shell_cannot_read(tmp_path: Path) -> None:
    """A line that drops leaves the terminal as it was set: plain keys, and no bytes for each motion of the mouse."""
    sent = sent_to_terminal(tmp_path)
    assert b"\x1b[?1003h" not in sent
    assert b"\x1b[?1002h" in sent
    assert not re.search(rb"\x1b\[>\d+u", sent)


def test_a_terminal_that_cannot_move_its_cursor_is_told_what_prints_lines(tmp_path: Path) -> None:
    sent = sent_to_terminal(tmp_path, until=b"TERM is dumb", TERM="dumb")
    assert b"doctor watch RUN --once" in sent
    assert b"\x1b[?1049h" not in sent


def test_tmux_that_draws_ascii_is_found_out_and_the_way_out_named(tmux: Tmux, tmp_path: Path) -> None:
    import pty

    run = whole_run(tmp_path / "quickstart-1").run.path
    tmux("new-session", "-d", "-x", "100", "-y", "30", "sleep 600")
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C"})
        os.execvp("tmux", ["tmux", "-f", "/dev/null", "-S", str(tmux.socket), "attach"])
    for _ in range(100):
        if tmux("list-clients").strip():
            break
        time.sleep(0.05)
    shell = shlex.join(["env", f"PYTHONPATH={ROOT}", "LC_ALL=C.UTF-8", *command(str(run))])
    tmux("respawn-pane", "-k", shell)
    text = tmux.sees("tmux draws ASCII only here: start or attach it as `tmux -u`", "smoothed")
    assert text.isascii()
    tmux("detach-client")
    os.close(fd)
    os.waitpid(pid, 0)
