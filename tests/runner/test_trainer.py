"""The loop's promises, each on a tiny real model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from runner.signals import StopRequest
from tests.runner.tiny import events, final_hash, last_losses, make_run, outcome, train

pytestmark = pytest.mark.train


def final_weights(run: Any) -> dict[str, Any]:
    import safetensors.torch

    return dict(safetensors.torch.load_file(run.final / "model.safetensors"))


def test_a_run_completes_and_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert train(run) == 0
    started = events(run, "run-started")[-1].data
    assert started["steps_total"] == 40 and started["samples_total"] == 160
    assert [event.step for event in events(run, "step")] == list(range(1, 41))
    assert outcome(run)["outcome"] == "completed"
    assert {
        "loss",
        "lr",
        "grad_norm",
        "samples",
        "tokens",
        "padded_tokens",
        "epoch",
        "seconds",
        "split",
    } <= set(events(run, "step")[0].data)


def test_the_same_plan_trains_the_same_weights(tmp_path: Path) -> None:
    first, second = (
        make_run(tmp_path / "a"),
        make_run(tmp_path / "b", ["data.train=" + str(tmp_path / "a/rows.csv")]),
    )
    assert train(first) == train(second) == 0
    assert final_hash(first) == final_hash(second)


def test_another_seed_trains_other_weights(tmp_path: Path) -> None:
    first, second = make_run(tmp_path), make_run(tmp_path, ["run.seed=8"], "other")
    assert train(first) == train(second) == 0
    assert final_hash(first) != final_hash(second)


GPT2 = 'model.config={model_type="gpt2", n_embd=32, n_layer=1, n_head=2, n_positions=64}'
TASKS = {
    "classification": [],
    "balanced class weights": ["train.class_weights=[1.0, 3.0]"],
    "label smoothing": ["train.label_smoothing=0.1"],
    "regression": ["model.task=regression"],
    "multi-label": ["model.task=multi-label"],
    "causal language model": ["model.task=causal-lm", GPT2],
    "masked language model": ["model.task=masked-lm"],
}


@pytest.mark.parametrize("overrides", TASKS.values(), ids=TASKS.keys())
def test_accumulation_equals_one_big_batch(tmp_path: Path, overrides: list[str]) -> None:
    """160 rows in windows of 15: the last window of an epoch has 10, which micro-batches of 3 do not
    divide."""
    common = ["model.dropout=0.0", "train.epochs=1", "train.batch_size=15", "train.lr=1e-4", *overrides]
    whole = make_run(tmp_path, [*common, "train.micro_batch_size=15"], "whole")
    parts = make_run(tmp_path, [*common, "train.micro_batch_size=3"], "parts")
    assert train(whole) == train(parts) == 0
    for one, many in zip(events(whole, "step"), events(parts, "step"), strict=True):
        assert many.data["loss"] == pytest.approx(one.data["loss"], rel=1e-5, abs=1e-6)
        assert many.data["grad_norm"] == pytest.approx(one.data["grad_norm"], rel=1e-4)
    big, small = final_weights(whole), final_weights(parts)
    assert max(float((big[name] - small[name]).abs().max()) for name in big) < 2e-6


def test_the_last_window_of_an_epoch_counts_its_own_samples(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.epochs=1", "train.batch_size=15", "train.micro_batch_size=5"])
    assert train(run) == 0
    assert sorted(event.data["samples"] for event in events(run, "step")) == [10] + [15] * 10


def test_evaluation_changes_nothing_in_the_training(tmp_path: Path) -> None:
    often = make_run(tmp_path, ["train.evaluate_every=1"], "often")
    never = make_run(tmp_path, ["train.evaluate_every=end"], "never")
    assert train(often) == train(never) == 0
    assert final_hash(often) == final_hash(never)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_metrics_do_not_depend_on_the_evaluation_batch(tmp_path: Path, size: int) -> None:
    run = make_run(tmp_path, [f"train.eval_batch_size={size}", "train.steps=10"])
    reference = make_run(tmp_path, ["train.eval_batch_size=40", "train.steps=10"], "reference")
    assert train(run) == train(reference) == 0
    mine, other = events(run, "evaluation")[-1].data, events(reference, "evaluation")[-1].data
    assert mine["accuracy"] == other["accuracy"]
    assert mine["loss"] == pytest.approx(other["loss"], abs=1e-6)


def test_workers_change_nothing(tmp_path: Path) -> None:
    none = make_run(tmp_path, ["train.workers=0", "train.steps=12"], "none")
    two = make_run(tmp_path, ["train.workers=2", "train.steps=12"], "two")
    assert train(none) == train(two) == 0
    assert final_hash(none) == final_hash(two)


class StopAfter(StopRequest):
    """Asks to stop when it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def __bool__(self) -> bool:
        self.looks -= 1
        return self.looks < 0


GEOMETRIES = {
    "bucketed, dropout, accumulation": [],
    "plain order": ["train.bucketing=false"],
    "two workers": ["train.workers=2"],
    "bf16": ["train.precision=bf16"],
    "fp16 with a scaler": ["train.precision=fp16"],
    "masked language model, two workers": ["model.task=masked-lm", "train.workers=2"],
    "causal language model": ["model.task=causal-lm", GPT2],
    "early stopping": ["train.patience=9", "train.evaluate_every=3", "train.restore_best=true"],
    "class weights, smoothing, early stopping, two workers, bf16": [
        "train.class_weights=balanced",
        "train.label_smoothing=0.1",
        "train.patience=3",
        "train.evaluate_every=3",
        "train.restore_best=true",
        "train.workers=2",
        "train.precision=bf16",
    ],
}


@pytest.mark.parametrize("overrides", GEOMETRIES.values(), ids=GEOMETRIES.keys())
@pytest.mark.parametrize("looks", [5, 27])
def test_stopped_and_resumed_equals_never_stopped(tmp_path: Path, overrides: list[str], looks: int) -> None:
    whole = make_run(tmp_path, overrides, "whole")
    parts = make_run(tmp_path, overrides, "parts")
    assert train(whole) == 0
    assert train(parts, stop=StopAfter(looks)) == 143
    assert outcome(parts)["outcome"] == "stopped"
    assert train(parts, resume=True) == 0
    assert final_hash(parts) == final_hash(whole)
    assert last_losses(parts) == last_losses(whole)


def test_a_non_finite_loss_halts_before_the_update_and_names_the_rows(tmp_path: Path) -> None:
    """A learning rate that blows the weights up; 20 steps earlier the checkpoint is still good."""
    run = make_run(tmp_path, ["train.lr=1e30", "train.clip_norm=0", "train.warmup=0"])
    assert train(run) == 4
    last = outcome(run)
    assert last["outcome"] == "non-finite" and "data rows:" in str(last["error"])
    steps = last["steps"]
    assert isinstance(steps, int) and len(events(run, "step")) == steps


def test_skipping_non_finite_windows_ends_too(tmp_path: Path) -> None:
    policy = ["train.non_finite=skip", "train.non_finite_limit=2"]
    run = make_run(tmp_path, ["train.lr=1e30", "train.clip_norm=0", "train.warmup=0", *policy])
    assert train(run) == 4
    skipped = [event for event in events(run, "step") if event.data.get("skipped")]
    assert len(skipped) == 2
    assert all(not math.isfinite(float(event.data["loss"])) for event in skipped)
    assert len({event.data["lr"] for event in skipped}) == 1, (
        "the schedule stands still while updates are skipped"
    )


def test_the_final_model_opens_with_its_labels(tmp_path: Path) -> None:
    import transformers

    run = make_run(tmp_path, ['data.labels=["0", "1"]', "train.epochs=4"])
    assert train(run) == 0
    model = transformers.AutoModelForSequenceClassification.from_pretrained(str(run.final))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(run.final))
    assert model.config.id2label == {0: "0", 1: "1"}
    answer = model(**tokenizer(["the soup was lovely and warm"], return_tensors="pt")).logits.argmax(-1)
    assert model.config.id2label[int(answer)] == "1"


def test_early_stopping_restores_the_best_weights(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, ["train.patience=10", "train.evaluate_every=4", "train.restore_best=true", "train.epochs=9"]
    )
    assert train(run) == 0
    metrics = outcome(run)["metrics"]
    best = max(event.data["accuracy"] for event in events(run, "evaluation"))
    assert isinstance(metrics, dict) and metrics["accuracy"] == best > 0.9
    assert metrics["loss"] != events(run, "evaluation")[-1].data["loss"], "the best weights, not the last"
    assert len(events(run, "step")) < 180


def test_a_second_trainer_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    import os

    from runner.session import take_lock

    run = make_run(tmp_path)
    lock = take_lock(run)
    assert lock is not None
    assert train(run) == 1
    assert not list(run.events.glob("*.jsonl"))
    os.close(lock)
    assert train(run) == 0
