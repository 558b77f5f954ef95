"""What goes wrong on one process is known to all of them before any acts: they leave, go on or save together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.rundir import RunDir
from tests.parallel.together import furthest, overrides, train_ranks
from tests.runner.tiny import events, make_run, outcome, train

pytestmark = pytest.mark.train

LOSS = """\
import os, signal
import torch

calls = 0

def loss(logits, labels):
    global calls
    calls += torch.is_grad_enabled()
    found = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    if os.environ.get("RANK") == "1" and torch.is_grad_enabled() and calls == {at}:
        {trouble}
    return found
"""
NAN = "found = found * float('nan')"
SHORT = "raise RuntimeError('DefaultCPUAllocator: not enough memory: you tried to allocate 1 byte')"
SIGNAL = "os.kill(os.getpid(), signal.SIGTERM)"


def run_with(tmp_path: Path, trouble: str, *more: str, at: int = 8) -> RunDir:
    """Return a run whose second rank meets ``trouble`` in its ``at``-th forward pass (the fourth window)."""
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=trouble, at=at))
    settings = overrides("train.lr=3e-4", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"', *more)
    return make_run(tmp_path, settings)


def stopped_and_through(tmp_path: Path, settings: Sequence[str]) -> tuple[RunDir, RunDir]:
    """Return a run of two processes that was stopped and went on, and one that never was; their weights are the same bits.

    ``settings`` name the loss ``trouble_loss:loss``.
    """
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble=SIGNAL, at=13))
    run = make_run(tmp_path, settings)
    assert train_ranks(run, 2) == [143, 143], outcome(run)
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="pass", at=0))
    assert train_ranks(run, 2, resume=True) == [0, 0], outcome(run)
    through = make_run(tmp_path, settings, "through")
    assert train_ranks(through, 2) == [0, 0]
    assert furthest(run.final, through.final) == 0.0
    return run, through


def test_a_nan_on_one_process_ends_all_of_them_before_the_update(tmp_path: Path) -> None:
    run = run_with(tmp_path, NAN)
    assert train_ranks(run, 2) == [4, 4]
    assert outcome(run)["outcome"] == "non-finite" and outcome(run)["steps"] == 3
    (note,) = [event for event in events(run, "note") if event.data["level"] == "fail"]
    rows = note.data["text"]["params"]["rows"].split(", ")
    assert len(rows) == 2, "the micro-batch of the other rank is named, and no other"


def test_a_nan_is_left_out_on_all_of_them_where_that_is_wanted(tmp_path: Path) -> None:
    run = run_with(tmp_path, NAN, 'train.non_finite="skip"')
    assert train_ranks(run, 2) == [0, 0], outcome(run)
    skipped = [event.step for event in events(run, "step") if event.data.get("skipped")]
    assert skipped == [4]


@pytest.mark.parametrize("at", [7, 8], ids=["in the first micro-batch", "in the last, before they exchange"])
def test_memory_short_on_one_process_cuts_smaller_on_all_and_changes_no_number(
    tmp_path: Path, at: int
) -> None:
    run = run_with(tmp_path, SHORT, at=at)
    assert train_ranks(run, 2) == [0, 0], outcome(run)
    (note,) = [event for event in events(run, "note") if "out of memory" in event.data["text"]["msgid"]]
    assert "rank 1" in note.data["text"]["params"]["why"]
    alone = make_run(tmp_path, overrides("train.lr=3e-4"), "alone")
    assert train(alone) == 0
    assert furthest(run.final, alone.final) <= 1e-6


def test_a_signal_to_one_process_saves_and_ends_all_and_they_go_on_to_the_bit(tmp_path: Path) -> None:
    run = run_with(tmp_path, SIGNAL, at=13)
    assert train_ranks(run, 2) == [143, 143], outcome(run)
    stopped_at = outcome(run)["steps"]
    assert stopped_at == 7 and run.checkpoint(7).is_dir()
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="pass", at=0))
    assert train_ranks(run, 2, resume=True) == [0, 0], outcome(run)
    through = make_run(
        tmp_path,
        overrides("train.lr=3e-4", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"'),
        "through",
    )
    assert train_ranks(through, 2) == [0, 0]
    assert furthest(run.final, through.final) == 0.0


def test_another_number_of_processes_is_refused_unless_accepted(tmp_path: Path) -> None:
    run = run_with(tmp_path, SIGNAL, at=13)
    assert train_ranks(run, 2) == [143, 143]
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="pass", at=0))
    assert train_ranks(run, 3, resume=True) == [1, 1, 1]
    assert "world_size: 2 -> 3" in str(outcome(run)["error"])
    assert train_ranks(run, 3, resume=True, approximate=True) == [0, 0, 0], outcome(run)


def test_four_processes_go_on_to_the_bit_too(tmp_path: Path) -> None:
    run = run_with(tmp_path, SIGNAL, at=4)
    assert train_ranks(run, 4) == [143] * 4, outcome(run)
    (tmp_path / "trouble_loss.py").write_text(LOSS.format(trouble="pass", at=0))
    assert train_ranks(run, 4, resume=True) == [0] * 4, outcome(run)
    through = make_run(
        tmp_path,
        overrides("train.lr=3e-4", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"'),
        "through",
    )
    assert train_ranks(through, 4) == [0] * 4
    assert furthest(run.final, through.final) == 0.0
