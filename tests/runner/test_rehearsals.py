"""What is tried before the first step: it shows what is wrong at once, and leaves no trace in the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runner.memory_probe
from runner.events import EventWriter
from runner.journal import Journal
from runner.memory_probe import worst_samples
from runner.plan import decode_plan
from runner.rehearsal import rehearse
from runner.rundir import RunDir
from runner.signals import StopRequest
from runner.trainer import Trainer
from tests.runner.tiny import events, final_hash, make_run, train

pytestmark = pytest.mark.train


def built(run: RunDir) -> Any:
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0")
    return Trainer(decode_plan(run.plan.read_bytes()), run, Journal(writer), StopRequest())


def notes(run: RunDir) -> list[str]:
    return [str(event.data["text"]["msgid"]) for event in events(run, "note")]


def test_a_run_that_tried_its_largest_micro_batch_first_ends_in_the_very_weights_of_one_that_did_not(
    tmp_path: Path,
) -> None:
    plain = make_run(tmp_path, ["train.epochs=1"], "plain")
    probed = make_run(tmp_path, ["train.epochs=1", "train.memory_probe=true"], "probed")
    assert train(plain) == train(probed) == 0
    assert final_hash(plain) == final_hash(probed)
    assert any("was tried before the first step" in note for note in notes(probed))
    assert not any("was tried before the first step" in note for note in notes(plain))


def test_the_probe_takes_the_longest_samples_there_are(tmp_path: Path) -> None:
    bench = built(make_run(tmp_path))
    lengths = sorted(map(int, bench.data.train.lengths))
    assert sorted(int(bench.data.train.lengths[i]) for i in worst_samples(bench)) == lengths[-4:]


def test_short_memory_shows_before_the_first_step_and_the_batch_is_cut_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, ["train.epochs=1", "train.memory_probe=true"])
    real = rehearse
    tried: list[int] = []

    def short_of_memory(bench: Any, batch: Any) -> None:
        tried.append(len(batch["labels"]))
        if len(batch["labels"]) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        real(bench, batch)

    monkeypatch.setattr(runner.memory_probe, "rehearse", short_of_memory)
    assert train(run) == 0
    assert tried == [4, 2]
    first_step = events(run, "step")[0]
    cut = next(event for event in events(run, "note") if "out of memory" in event.data["text"]["msgid"])
    assert cut.seq < first_step.seq
