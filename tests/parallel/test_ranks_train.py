"""Several processes train what one does: the same windows, the same numbers, whatever is cut and dealt how."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.rundir import RunDir
from tests.parallel.together import furthest, overrides, steps, train_ranks
from tests.runner.tiny import events, make_run, outcome, train

pytestmark = pytest.mark.train

CUTS = {
    "one micro-batch each": ["train.batch_size=8", "train.micro_batch_size=8"],
    "accumulation": ["train.batch_size=16", "train.micro_batch_size=2"],
    "a last window of 4 and micro-batches that do not come out": [
        "train.batch_size=12", "train.micro_batch_size=4", "train.steps=16"],
    "micro-batches by tokens, as many as they need": [
        "train.batch_size=16", "train.micro_batch_size=8", "train.micro_batch_tokens=64"],
    "class weights": ["train.class_weights=[1.0, 3.0]"],
}  # fmt: skip


def close(one: list[float], other: list[float]) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) <= 1e-5 * max(1.0, abs(a)) for a, b in zip(one, other, strict=True)
    )


def assert_same_training(one: RunDir, other: RunDir) -> None:
    """Losses and norms of every step, evaluations, and the weights: in fp32 to 1e-6."""
    for name in ("loss", "grad_norm"):
        assert close([step[name] for step in steps(one)], [step[name] for step in steps(other)]), name
    for alone, shared in zip(events(one, "evaluation"), events(other, "evaluation"), strict=True):
        assert shared.data["accuracy"] == alone.data["accuracy"]
        assert shared.data["f1_macro"] == pytest.approx(alone.data["f1_macro"], abs=1e-12)
        assert shared.data["loss"] == pytest.approx(alone.data["loss"], abs=1e-6)
        assert shared.data["samples"] == alone.data["samples"]
    assert furthest(one.final, other.final) <= 1e-6


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
def test_n_processes_train_the_weights_of_one(tmp_path: Path, size: int, cut: list[str]) -> None:
    settings = overrides("train.lr=3e-4", *cut)
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, size) == [0] * size, outcome(other)
    assert_same_training(one, other)
    each = [sum(step["samples"] for step in steps(other, rank)) for rank in range(size)]
    assert sum(each) == sum(step["samples"] for step in steps(one))
    assert max(each) < sum(each)


def test_a_processs_dropout_is_its_own_and_comes_again(tmp_path: Path) -> None:
    settings = ["train.epochs=1", "train.steps=6", "model.dropout=0.3"]
    runs = [make_run(tmp_path, settings, name) for name in ("first", "second")]
    for run in runs:
        assert train_ranks(run, 2) == [0, 0]
    assert furthest(runs[0].final, runs[1].final) == 0.0


def test_parameters_freed_later_and_parameters_that_nothing_uses(tmp_path: Path) -> None:
    rule = 'train.freeze=[{ parameters = "bert.encoder.layer.0.*", until = 3 }]'
    settings = overrides("train.lr=3e-4", "train.steps=8", rule)
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, 2) == [0, 0], outcome(other)
    assert_same_training(one, other)


@pytest.mark.parametrize("task", ["causal-lm", "masked-lm"])
def test_language_models_count_tokens_over_all_processes(tmp_path: Path, task: str) -> None:
    kind = "gpt2" if task == "causal-lm" else "bert"
    config = '{ model_type = "bert", hidden_size = 32, num_hidden_layers = 2, num_attention_heads = 2, intermediate_size = 64, max_position_embeddings = 64 }'
    if kind == "gpt2":
        config = '{ model_type = "gpt2", n_embd = 32, n_layer = 2, n_head = 2, n_positions = 64 }'
    settings = overrides("train.lr=3e-4", "train.steps=6", f'model.task="{task}"', f"model.config={config}")
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0, outcome(one)
    assert train_ranks(other, 2) == [0, 0], outcome(other)
    assert close([step["loss"] for step in steps(one)], [step["loss"] for step in steps(other)])
    assert furthest(one.final, other.final) <= 1e-6
