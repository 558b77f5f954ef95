"""A disk that is full takes neither the training nor its exit code away: what cannot be written is lost, and counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.rundir import RunDir
from tests.runner.tiny import copy_code, events, final_hash, make_run, outcome, train

pytestmark = pytest.mark.train

FULL = Path("/dev/full")
"""Every write to it fails as on a full disk."""
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


def started(run: RunDir) -> int:
    """Train in a process of its own whose log lies on a full disk; return the exit code."""
    argv = [sys.executable, "-u", str(copy_code(run)), str(run.path)]
    with open(FULL, "wb") as full:
        return subprocess.run(
            argv, timeout=300, stdout=full, stderr=full, env={**os.environ, "OMP_NUM_THREADS": "1"}
        ).returncode


@needs_full
def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    run, plain = make_run(tmp_path, ["train.steps=8"], "run"), make_run(tmp_path, ["train.steps=8"], "plain")
    assert train(plain) == 0
    assert started(run) == 0
    assert final_hash(run) == final_hash(plain)
    assert len(events(run, "step")) == 8


@needs_full
def test_a_failure_has_its_last_word_without_a_log(tmp_path: Path) -> None:
    run = make_run(tmp_path, [f"data.train={tmp_path / 'nowhere.csv'}"])
    assert started(run) == 1
    assert "nowhere.csv" in str(outcome(run)["error"])


def test_events_that_cannot_be_written_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.events import EventWriter

    plain, run = make_run(tmp_path, ["train.steps=8"], "plain"), make_run(tmp_path, ["train.steps=8"], "run")
    assert train(plain) == 0

    def full(self: EventWriter, kind: str, step: int | None = None, **data: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(EventWriter, "write", full)
        assert train(run) == 0
    assert final_hash(run) == final_hash(plain)
