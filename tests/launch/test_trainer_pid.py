"""A process is its number and its start time, and a number from elsewhere says nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.probes.process_tree import parse_stat
from doctor.trainer_pid import (
    ProcessMark,
    lives,
    mark_of,
    read_mark,
    signal_trainer,
    trainer_alive,
    write_mark,
)
from runner.rundir import RunDir


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def mark(sleeper: subprocess.Popen[bytes]) -> ProcessMark:
    found = mark_of(sleeper.pid)
    assert found is not None
    return found


def test_a_running_process_lives(mark: ProcessMark) -> None:
    assert lives(mark) is True


def test_a_reused_number_is_another_process(mark: ProcessMark) -> None:
    assert lives(replace(mark, start_ticks=mark.start_ticks - 1)) is False


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"boot_id": "other"}, False, id="same host, earlier boot: it is over"),
        pytest.param({"boot_id": "other", "hostname": "elsewhere"}, None, id="another host"),
        pytest.param({"pid_namespace": "pid:[1]"}, None, id="another container of this host"),
        pytest.param({"hostname": "", "boot_id": "", "pid_namespace": ""}, None, id="nobody wrote where"),
    ],
)
def test_what_a_mark_from_elsewhere_says(
    mark: ProcessMark, change: dict[str, str], expected: bool | None
) -> None:
    assert lives(replace(mark, **change)) is expected  # type: ignore[arg-type]


def test_a_mark_survives_the_file(mark: ProcessMark, tmp_path: Path) -> None:
    write_mark(tmp_path / "trainer.pid", mark)
    assert read_mark(tmp_path / "trainer.pid") == mark


@pytest.mark.parametrize("content", ["", "x y", "12", "\xff\xfe"], ids=["empty", "words", "half", "bytes"])
def test_a_broken_pid_file_says_nothing(content: str, tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.trainer_pid.write_text(content, "latin-1")
    assert trainer_alive(run) is None


def test_a_signal_goes_to_the_proven_process_only(
    mark: ProcessMark, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    run = RunDir(tmp_path)
    write_mark(run.trainer_pid, replace(mark, start_ticks=mark.start_ticks - 1))
    assert signal_trainer(run) is False
    assert sleeper.poll() is None
    write_mark(run.trainer_pid, mark)
    assert signal_trainer(run, signal.SIGTERM) is True
    assert sleeper.wait(10) == -signal.SIGTERM
    assert signal_trainer(run) is False


def test_a_zombie_has_ended(mark: ProcessMark, sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert lives(mark) is False


def test_a_stat_line_with_blanks_and_parentheses_in_the_name() -> None:
    line = "4242 (python -u (x) y) S 17 4242 4242 0 -1 4194560 1 2 3 4 250 50 7 8 20 0 9 0 123456 1000 25 0"
    stat = parse_stat(line)
    assert (stat.state, stat.parent_pid, stat.cpu_ticks, stat.threads, stat.start_ticks) == (
        "S",
        17,
        300,
        9,
        123456,
    )
