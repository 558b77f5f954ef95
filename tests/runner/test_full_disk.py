"""A disk that is full takes neither the training nor its exit code away: what cannot be written is lost, and counted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.durable import is_full
from runner.final import write_final
from runner.rundir import RunDir
from runner.signals import StopRequest
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


class AtLook(StopRequest):
    """Never asks to stop; does something when it is looked at for the n-th time."""

    def __init__(self, look: int, act: Callable[[], None]) -> None:
        super().__init__()
        self._left, self._act = look, act

    def __bool__(self) -> bool:
        self._left -= 1
        if self._left == 0:
            self._act()
        return False


def removed(folder: Path) -> None:
    """Remove a folder out of a trainer's sight first: its own thread may be writing there."""
    away = folder.with_name("away")
    folder.rename(away)
    shutil.rmtree(away)


def said(run: RunDir, level: str) -> list[str]:
    return [str(event.data["text"]["msgid"]) for event in events(run, "note") if event.data["level"] == level]


def test_a_run_directory_that_is_removed_ends_the_run_at_its_next_save(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path)
    assert train(run, stop=AtLook(10, lambda: removed(run.path))) == 1
    assert "was removed: nothing of this run can be kept any more" in capsys.readouterr().out
    assert not run.path.exists(), "nor is it made again"


def test_checkpoints_removed_to_free_some_room_are_written_anew(tmp_path: Path) -> None:
    whole, run = make_run(tmp_path, name="whole"), make_run(tmp_path)
    assert train(whole) == 0
    assert train(run, stop=AtLook(30, lambda: removed(run.checkpoints))) == 0
    assert said(run, "fail") == [] and run.checkpoint(40).is_dir()
    assert final_hash(run) == final_hash(whole)


def full_for(times: int) -> Callable[..., None]:
    """Return a way to write the model that finds the disk full so many times, in safetensors' words."""
    left = iter(range(times))

    def write(*arguments: object) -> None:
        if next(left, None) is not None:
            raise Exception("Error while serializing: I/O error: No space left on device (os error 28)")
        write_final(*arguments)  # type: ignore[arg-type]

    return write


def test_a_model_without_room_is_in_its_checkpoint_and_written_when_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, run = make_run(tmp_path, ["train.steps=8"], "whole"), make_run(tmp_path, ["train.steps=8"])
    assert train(whole) == 0
    with monkeypatch.context() as patch:
        patch.setattr("runner.final.write_final", full_for(1))
        assert train(run) == 1
    assert "The checkpoint of step 8 holds its weights" in str(outcome(run)["error"])
    assert train(run, resume=True) == 0
    assert final_hash(run) == final_hash(whole) and len(events(run, "step")) == 8


def test_a_model_that_nothing_else_holds_waits_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, run = make_run(tmp_path, ["train.steps=8"], "whole"), make_run(tmp_path, ["train.steps=8"])
    assert train(whole) == 0
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    monkeypatch.setattr("runner.final.LOOK_FOR_ROOM_S", 0.01)
    monkeypatch.setattr("runner.final.write_final", full_for(3))
    assert train(run) == 0
    assert any("no checkpoint holds its weights: free some" in text for text in said(run, "warn"))
    assert final_hash(run) == final_hash(whole)


def test_a_model_that_nobody_made_room_for_is_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, ["train.steps=3"])
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    monkeypatch.setattr("runner.final.LOOK_FOR_ROOM_S", 0.01)
    monkeypatch.setattr("runner.final.WAIT_FOR_ROOM_S", 0.05)
    monkeypatch.setattr("runner.final.write_final", full_for(10_000))
    assert train(run) == 1
    assert "nor for a checkpoint: its weights are lost" in str(outcome(run)["error"])


def test_a_run_directory_in_which_nothing_can_be_made_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path)
    run.events.rmdir()
    run.events.write_text("")
    assert train(run) == 1
    assert f"{run.path}: nothing can be written there: " in capsys.readouterr().err
    run.events.unlink()
    run.events.mkdir()
    assert train(run) == 0, "the refused start holds no lock"


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (OSError(28, "No space left on device"), True),
        (OSError(122, "Disk quota exceeded"), True),
        (OSError(30, "Read-only file system"), False),
        (Exception("I/O error: No space left on device (os error 28)"), True),
        (Exception("header too large"), False),
    ],
    ids=str,
)
def test_a_full_disk_is_known_by_number_or_word(error: Exception, is_one: bool) -> None:
    assert is_full(error) is is_one
