"""What is tried before the first step: it shows what is wrong at once, and leaves no trace in the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runner.compiling
from runner.compiling import earns_back
from runner.events import EventWriter
from runner.journal import Journal
from runner.memory_probe import worst_samples
from runner.plan import decode_plan
from runner.rehearsal import rehearse
from runner.rundir import RunDir
from runner.signals import StopRequest
from runner.trainer import Trainer
from tests.runner.tiny import events, final_hash, last_losses, make_run, train

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


@pytest.mark.parametrize(
    ("ratio", "compile_s", "expected_s", "pays"),
    [
        (0.7, 100.0, 3600.0, True),
        (0.7, 100.0, 300.0, False),
        (0.97, 10.0, 36000.0, False),
        (1.2, 10.0, 36000.0, False),
    ],
    ids=["long run", "too short to earn it back", "no gain worth the risk", "slower"],
)
def test_compiling_is_kept_only_where_it_earns_its_time_back(
    ratio: float, compile_s: float, expected_s: float, pays: bool
) -> None:
    assert earns_back(ratio, compile_s, expected_s) is pays


def test_compile_auto_in_a_short_run_compiles_nothing_says_so_and_trains_the_same(tmp_path: Path) -> None:
    plain = make_run(tmp_path, ["train.epochs=1"], "plain")
    auto = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"], "auto")
    assert train(plain) == train(auto) == 0
    assert last_losses(plain) == last_losses(auto)
    assert any("would not earn it back" in note for note in notes(auto))
    assert b'"compiled":false' in (auto.path / "compile.json").read_bytes()


def test_a_compiler_that_fails_is_given_up_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("InductorError: no C++ compiler")

    monkeypatch.setattr(runner.compiling, "LEAST_RUN_S", 0.0)
    monkeypatch.setattr("torch.compile", broken)
    run = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"])
    assert train(run) == 0
    assert any("given up ({why})" in note for note in notes(run))


def test_a_run_that_was_compiled_goes_on_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[bool] = []

    def compile_(model: Any, dynamic: bool) -> Any:
        compiled.append(dynamic)
        return model

    monkeypatch.setattr("torch.compile", compile_)
    run = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"])
    (run.path / "compile.json").write_text('{"compiled": true, "why": {"msgid": "kept"}}')
    assert train(run) == 0
    assert compiled == [True]
