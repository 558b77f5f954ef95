"""Trackers are told beside the run: for real where they are installed; one that fails, hangs or is missing stops nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from runner.rundir import RunDir
from tests.runner.tiny import copy_code, events, final_hash, make_run, outcome, train

pytestmark = pytest.mark.train


def said(run: RunDir) -> list[dict[str, Any]]:
    """Return every sentence on a tracker."""
    notes = (event.data["text"] for event in events(run, "note"))
    return [text for text in notes if "tracker" in text["msgid"]]


def test_tensorboard_gets_the_losses(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = make_run(tmp_path, ['train.trackers=["tensorboard"]', "train.steps=6"])
    assert train(run) == 0
    found = accumulator.EventAccumulator(str(run.path / "trackers" / "run")).Reload()
    told = [scalar.value for scalar in found.Scalars("train/loss")]
    assert told == pytest.approx([event.data["loss"] for event in events(run, "step")], rel=1e-5)
    assert said(run) == []


def started(run: RunDir, **variables: str) -> subprocess.CompletedProcess[str]:
    """Train in a process of its own, as a launcher starts it: these libraries settle their places when imported."""
    unset = ("WANDB_MODE", "WANDB_DIR", "WANDB_API_KEY", "TRACKIO_DIR")
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    argv = [sys.executable, "-u", str(copy_code(run)), str(run.path)]
    environ |= {"OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(argv, timeout=300, capture_output=True, text=True, env=environ)


def test_wandb_writes_its_run_offline_and_asks_nobody(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed (62 MB): pip install wandb")
    run = make_run(tmp_path, ['train.trackers=["wandb"]', "train.steps=6"])
    ended = started(run)
    assert ended.returncode == 0, ended.stderr
    (binary,) = (run.path / "trackers" / "wandb").glob("offline-run-*/run-*.wandb")
    assert b"train/loss" in binary.read_bytes() and said(run) == []


def test_trackio_keeps_its_numbers_in_the_run_directory(tmp_path: Path) -> None:
    pytest.importorskip("trackio", reason="trackio is not installed (it brings gradio): pip install trackio")
    import sqlite3

    run = make_run(tmp_path, ['train.trackers=["trackio"]', "train.steps=6"])
    ended = started(run)
    assert ended.returncode == 0, ended.stderr
    (database,) = (run.path / "trackers").glob("*.db")
    with sqlite3.connect(database) as connection:
        kept = [bytes(row) if isinstance(row, bytes) else str(row).encode() for (row,) in connection.execute("SELECT metrics FROM metrics")]  # fmt: skip
    assert sum(b"train/loss" in row for row in kept) == 6 and said(run) == []


def fail(self: Any, values: Any, step: int) -> None:
    raise ConnectionError("no route")


def test_a_tracker_that_fails_or_hangs_stops_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner import trackers

    gate = threading.Event()

    class Failing:
        log = fail

        def store_init_configuration(self, values: Any) -> None: ...

    class Hanging(Failing):
        def log(self, values: Any, step: int) -> None:
            gate.wait(20)
            gate.set()  # whoever waited for it would wait once, and then not have left it out

    makers = {"wandb": Failing, "trackio": Hanging}
    monkeypatch.setattr(trackers, "_maker", lambda name, run_name, folder: makers[name])
    monkeypatch.setattr(trackers, "QUEUE_LENGTH", 4)
    monkeypatch.setattr(trackers, "FINISH_S", 0.1)
    tracked = make_run(tmp_path, ['train.trackers=["wandb", "trackio"]'], "tracked")
    plain = make_run(tmp_path, [], "plain")
    assert train(tracked) == train(plain) == 0
    gate.set()
    assert final_hash(tracked) == final_hash(plain)
    found = {text["params"]["name"]: text for text in said(tracked)}
    assert found["wandb"]["params"]["why"] == "ConnectionError: no route"
    assert "does not keep up" in found["trackio"]["msgid"] and len(found) == 2


def test_a_tracker_that_does_not_end_is_said_once_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner import trackers

    gate = threading.Event()

    class Endless:
        def store_init_configuration(self, values: Any) -> None: ...
        def log(self, values: Any, step: int) -> None: ...
        def finish(self) -> None:
            gate.wait(60)

    monkeypatch.setattr(trackers, "_maker", lambda name, run_name, folder: Endless)
    monkeypatch.setattr(trackers, "FINISH_S", 0.1)
    run = make_run(tmp_path, ['train.trackers=["wandb"]', "train.steps=3"])
    assert train(run) == 0
    gate.set()
    (text,) = said(run)
    assert "did not finish" in text["msgid"]


def test_a_tracker_that_is_missing_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    run = make_run(tmp_path, ['train.trackers=["wandb"]', "train.steps=3"])
    assert train(run) == 0
    (text,) = said(run)
    assert text["params"]["name"] == "wandb" and "wandb" in text["params"]["why"]


HANGS = """
import threading, time
threading.Thread(target=time.sleep, args=(3600,)).start()  # as a library's own that waits for a network
def init(*arguments, **options):
    time.sleep(3600)
"""


def test_a_librarys_thread_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    """Started as a launcher does: after the last word the process is gone, whatever the tracker still waits for."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "trackio.py").write_text(HANGS)
    run = make_run(tmp_path, ['train.trackers=["trackio"]', "train.steps=3"])
    ended = started(run, PYTHONPATH=str(tmp_path / "modules"))
    assert ended.returncode == 0, ended.stderr
    assert outcome(run)["outcome"] == "completed"
    (text,) = said(run)
    assert "did not finish" in text["msgid"]
