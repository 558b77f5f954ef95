"""The event file that a process writes is found: kept open, or named after it; another process's old one is not taken."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doctor.bounded_walk import Bounds, Entry, walk
from doctor.probes.event_files import number_inside, tensorboard_of
from doctor.process_watch import ProcessWatcher

KEEPS_OPEN = "import sys, time\nfile = open(sys.argv[1], 'ab'); file.write(b''); print('there', flush=True); time.sleep(600)"
WAITS = "import time\nprint('there', flush=True); time.sleep(600)"
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(program: str, *argv: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *argv], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def named(folder: Path, pid: int, age_s: float = 0.0, tail: str = ".0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.1700000000.box.{pid}{tail}"
    path.write_bytes(b"")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_a_file_kept_open_is_found_wherever_it_lies(start: Start, tmp_path: Path) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-logs"
    elsewhere.mkdir()
    path = elsewhere / "events.out.tfevents.17.box.1"
    job = start(KEEPS_OPEN, str(path))
    assert tensorboard_of([job.pid]) == path


@pytest.mark.parametrize("tail", [".0", "", ".v2"], ids=["torch", "tensorboardX", "keras"])
def test_a_file_named_after_the_process_is_found_below_its_folder(
    start: Start, tmp_path: Path, tail: str
) -> None:
    job = start(WAITS)
    path = named(tmp_path / "runs" / "exp1", job.pid, tail=tail)
    named(tmp_path / "runs" / "exp2", job.pid + 1)
    named(tmp_path / ".hidden", job.pid)
    assert tensorboard_of([job.pid]) == path


def test_an_earlier_process_with_the_same_number_is_not_this_one(start: Start, tmp_path: Path) -> None:
    job = start(WAITS)
    named(tmp_path / "runs", job.pid, age_s=3600)
    assert tensorboard_of([job.pid]) is None


def test_processes_of_one_folder_are_looked_for_there_once(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of many processes that runs in / would else be searched for a second each."""
    walked: list[str] = []

    def counted(folder: Path, is_wanted: Callable[[Entry], bool], bounds: Bounds) -> Iterator[Path]:
        walked.append(str(folder))
        return walk(folder, is_wanted, bounds)

    jobs = [start(WAITS) for _ in range(3)]
    path = named(tmp_path / "runs", jobs[1].pid)
    monkeypatch.setattr("doctor.probes.event_files.walk", counted)
    assert tensorboard_of([job.pid for job in jobs]) == path
    assert walked == [str(tmp_path.resolve())]


def test_a_process_that_is_gone_has_none(start: Start) -> None:
    job = start(WAITS)
    job.kill()
    job.wait()
    assert tensorboard_of([job.pid]) is None


def test_a_number_in_our_own_namespace_is_itself() -> None:
    assert number_inside(os.getpid()) == os.getpid()


def test_watching_a_process_reads_its_event_file_unasked(start: Start, tmp_path: Path) -> None:
    job = start(WAITS)
    path = named(tmp_path / "runs", job.pid)
    watcher = ProcessWatcher(job.pid)
    try:
        (note, *_) = watcher.state.notes
    finally:
        watcher.close()
    assert note.data["text"].params == {"path": str(path)}
