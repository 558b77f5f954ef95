"""Runs that are not of this place: written by another host, whose clock is another, or removed while they are watched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from doctor.probes.process_tree import here
from doctor.trainer_pid import is_written_here
from doctor.watching import RunWatcher
from doctor.writer_clock import WriterClock
from runner.events import EventWriter
from runner.rundir import RunDir
from tests.commands_run import doctor


class Clocks:
    """Ours, and that of the host that writes the run."""

    def __init__(self, skew_s: float) -> None:
        self.ours, self.skew_s = 1_000_000.0, skew_s

    def now(self) -> float:
        return self.ours

    def theirs(self) -> float:
        return self.ours + self.skew_s


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.make()
    run.plan.write_text("{}")
    run.trainer_pid.write_text("77 1234 another-host boot-of-its-own pid:[1]\n")
    return run


def wrote(run: RunDir, clocks: Clocks, steps: int = 3) -> EventWriter:
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0", clock=clocks.theirs)
    writer.write("run-started", device="cpu", steps_total=100)
    for step in range(1, steps + 1):
        clocks.ours += 1.0
        writer.write("step", step, loss=1.0, samples=8, seconds=1.0)
    return writer


def test_a_run_of_another_host_is_known_as_one(run: RunDir) -> None:
    assert not is_written_here(run)
    run.trainer_pid.write_text(f"77 1234 {' '.join(here())}\n")
    assert is_written_here(run)


@pytest.mark.parametrize("skew_s", [-240.0, -3.0, 0.0, 3.0, 240.0])
def test_a_clock_that_differs_makes_no_run_silent(run: RunDir, skew_s: float) -> None:
    clocks = Clocks(skew_s)
    writer = wrote(run, clocks)
    watcher = RunWatcher(run, clock=clocks.now)
    watcher.poll()
    assert watcher.status() == "running"
    clocks.ours += 50.0
    watcher.poll()
    assert watcher.status() == "running"
    writer.write("step", 4, loss=1.0, samples=8, seconds=50.0)
    watcher.poll()
    assert watcher.status() == "running"


@pytest.mark.parametrize("skew_s", [-240.0, 0.0, 240.0])
def test_silence_is_told_by_our_own_clock(run: RunDir, skew_s: float) -> None:
    clocks = Clocks(skew_s)
    wrote(run, clocks)
    watcher = RunWatcher(run, clock=clocks.now)
    watcher.poll()
    clocks.ours += 70.0
    watcher.poll()
    assert watcher.status() == "stalled"
    assert watcher.alive is None  # nobody here can tell


def test_a_run_that_spoke_an_hour_ago_is_silent_at_first_sight(run: RunDir) -> None:
    clocks = Clocks(0.0)
    wrote(run, clocks)
    clocks.ours += 3600.0
    watcher = RunWatcher(run, clock=clocks.now)
    watcher.poll()
    assert watcher.status() == "stalled"


def test_a_clock_of_this_host_is_not_corrected() -> None:
    clock = WriterClock(is_here=True)
    clock.hear(1000.0, 1200.0)
    assert clock.now(1200.0) == 1200.0


def test_a_directory_that_is_removed_ends_the_watch_and_says_so(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(0.0)
    wrote(run, clocks)
    watcher = RunWatcher(run, clock=clocks.now)
    watcher.poll()
    assert not watcher.is_over()
    shutil.rmtree(run.path)
    watcher._asked_at = -1e9
    state = watcher.poll()
    assert watcher.is_over()
    assert watcher.status() == "lost"
    assert "was removed" in str(state.damage[0])
    assert state.step == 3  # what was seen stays


def test_a_disk_that_does_not_answer_is_no_removed_run(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = RunWatcher(run, clock=Clocks(0.0).now)
    wrote(run, Clocks(0.0))
    watcher.poll()

    def stale(self: Path, **_: object) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(Path, "stat", stale)
    watcher._asked_at = -1e9
    watcher._ask_alive()
    assert not watcher.is_gone


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_run_that_may_only_be_read_is_watched_reported_and_measured_all_the_same(
    run: RunDir, tmp_path: Path
) -> None:
    wrote(run, Clocks(0.0))
    for folder in (run.path, run.events):
        folder.chmod(0o555)
    try:
        done = doctor("watch", str(run.path), "--once")
        assert done.returncode == 0, done.stderr
        assert "step 3" in done.stdout
        assert doctor("metrics", str(run.path), "--once").returncode == 0
        assert "Traceback" not in done.stderr
    finally:
        for folder in (run.path, run.events):
            folder.chmod(0o755)
