"""Asked to stop at any point of a run: it leaves with 143 (or finishes what is nearly done), and goes on to the same weights. A
second Ctrl-C leaves at once, and what lies there is never worse than before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runner.checkpoint import checkpoint_folders
from runner.durable import what_is_wrong
from runner.profile import DataSection
from runner.rows import ReadingNotes
from runner.rundir import RunDir
from runner.signals import StopRequest
from tests.runner.killing import Signalled, start
from tests.runner.tiny import copy_code, events, final_hash, last_losses, make_run, outcome, train

pytestmark = pytest.mark.train

SHORT = ["train.epochs=1", "train.checkpoint_every=4", "train.evaluate_every=6"]
POINTS = {
    "the survey of the rows": "runner.survey:Survey._counts",
    "making the vocabulary": "runner.tokenizer:make_vocabulary",
    "tokenising": "runner.store:StoreWriter.add",
    "loading the model": "runner.together_data:build_model",
    "the first window": "runner.trainer:window_passes",
    "an evaluation": "runner.milestones:evaluate",
    "a save": "runner.saver:seal_folder",
    "between the name and the pointer of a save": "runner.saver:write_durably",
    "the removal of old checkpoints": "runner.saver:retire",
    "the last save": "runner.trainer:finish_run",
    "writing the model": "runner.final:seal_folder",
    "giving the model its name": "runner.final:publish_folder",
}
PREPARING = ("the survey of the rows", "making the vocabulary", "tokenising", "loading the model")
FINISHING = ("the last save", "writing the model", "giving the model its name")
AFTER_PREPARING = [point for point in POINTS if point not in PREPARING]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("whole"), SHORT, "whole")
    assert train(run) == 0
    return run


def like(whole: RunDir, folder: Path) -> RunDir:
    return make_run(folder, [*SHORT, f"data.train={whole.path.parent / 'rows.csv'}"], "run")


def assert_continues_to(server: Any, run: RunDir, whole: RunDir) -> None:
    last = start(server, run, resume=True)
    last.join()
    assert last.exitcode == 0
    assert final_hash(run) == final_hash(whole) and last_losses(run) == last_losses(whole)
    assert not what_is_wrong(run.final)


@pytest.mark.parametrize("point", POINTS)
def test_one_signal_stops_with_143_and_the_run_goes_on_to_the_same_weights(
    server: Any, whole: RunDir, tmp_path: Path, point: str
) -> None:
    run = like(whole, tmp_path)
    process = start(server, run, signalled=Signalled(POINTS[point]))
    process.join()
    if point in FINISHING:
        assert process.exitcode == 0 and outcome(run)["outcome"] == "completed"
    else:
        assert process.exitcode == 143 and outcome(run)["outcome"] == "stopped"
        assert bool(checkpoint_folders(run)) == (point not in PREPARING)
    assert_continues_to(server, run, whole)


@pytest.mark.parametrize("point", AFTER_PREPARING)
def test_a_second_interrupt_leaves_at_once_and_never_a_worse_checkpoint(
    server: Any, whole: RunDir, tmp_path: Path, point: str
) -> None:
    run = like(whole, tmp_path)
    process = start(server, run, signalled=Signalled(POINTS[point], signal.SIGINT, times=2))
    process.join()
    assert process.exitcode == 130
    told = [event.step or 0 for event in events(run, "checkpoint")]
    assert all(not what_is_wrong(folder) for _, folder in checkpoint_folders(run))
    assert not told or max(told) <= max(number for number, _ in checkpoint_folders(run))
    assert_continues_to(server, run, whole)


def test_the_rows_are_left_soon_after_somebody_asks(tmp_path: Path) -> None:
    from runner.chosen import LOOK_EVERY_ROWS, heeding
    from runner.signals import Stopped

    (tmp_path / "many.csv").write_text("text,label\n" + "".join(f"soup {n},1\n" for n in range(10_000)))
    stop, read = StopRequest(), 0
    with pytest.raises(Stopped):
        for read, _ in enumerate(
            heeding(stop)(DataSection(train=[str(tmp_path / "many.csv")]), "train", ReadingNotes()), start=1
        ):
            if read == 700:
                stop.signal_name = "SIGTERM"
    assert 700 <= read <= 700 + LOOK_EVERY_ROWS


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_what_whoever_started_it_had_ignored_stays_ignored(tmp_path: Path, number: signal.Signals) -> None:
    """nohup ignores SIGHUP, a script's shell SIGINT for what runs behind it."""
    code = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1]); from runner.signals import StopRequest;"
        f"stop = StopRequest.install(); os.kill(os.getpid(), {int(number)}); sys.exit(bool(stop))"
    )
    root = str(Path(__file__).parents[2])
    for ignored, left in ((True, 0), (False, 1)):
        before = signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
        try:
            assert subprocess.run([sys.executable, "-c", code, root]).returncode == left
        finally:
            signal.signal(number, before)


def test_a_signal_while_the_libraries_are_imported_is_heeded(tmp_path: Path) -> None:
    """As the launcher starts it: by path. The handler stands before torch is there."""
    run = make_run(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-u", str(copy_code(run)), str(run.path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    while process.poll() is None and not list(run.events.glob("*.jsonl")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143
    assert outcome(run)["outcome"] == "stopped" and not checkpoint_folders(run)
