"""A run that was stopped and is resumed is starting, not stopped, from the first word of its new trainer on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from doctor.trainer_pid import mark_of, write_mark
from doctor.watching import RunWatcher
from runner.events import EventWriter
from runner.rundir import RunDir

STOPPED = {"outcome": "stopped", "exit_code": 143, "steps": 3}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run of this very process, which is alive."""
    run = RunDir(tmp_path / "one")
    run.events.mkdir(parents=True)
    mark = mark_of(os.getpid())
    assert mark is not None
    write_mark(run.trainer_pid, mark)
    return run


def status_after(run: RunDir, *kinds: str) -> str:
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0")
    for kind in kinds:
        writer.write(kind, None, **(STOPPED if kind == "run-finished" else {"steps_total": 9}))
    writer.close()
    watcher = RunWatcher(run, time.time)
    watcher.poll()
    return watcher.status()


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        (("run-started", "run-finished"), "stopped"),
        (("run-started", "run-finished", "preparing"), "starting"),
        (("run-started", "run-finished", "preparing", "run-started"), "running"),
        (("run-started", "run-finished", "preparing", "run-finished"), "stopped"),
    ],
    ids=["stopped just now", "preparing again", "going on", "stopped while it prepared"],
)
def test_what_a_resumed_run_is_called(run: RunDir, kinds: tuple[str, ...], status: str) -> None:
    assert status_after(run, *kinds) == status
