"""A model cut into parts trains the same weights, and its files are those of any run."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers

from tests.parallel.test_ranks_train import assert_same_training
from tests.parallel.test_ranks_trouble import stopped_and_through
from tests.parallel.together import furthest, overrides, train_ranks
from tests.runner.tiny import make_run, outcome, train

pytestmark = pytest.mark.train

FSDP = 'parallel.strategy="fsdp"'


@pytest.mark.parametrize("size", [2, 3])
def test_parts_train_the_weights_of_one_process(tmp_path: Path, size: int) -> None:
    settings = overrides("train.lr=3e-4", "train.batch_size=12", "train.micro_batch_size=2", FSDP)
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, size) == [0] * size, outcome(other)
    assert_same_training(one, other)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(other.final)
    assert type(model).__name__ == "BertForSequenceClassification"
    assert model.config.architectures == ["BertForSequenceClassification"]


def test_tied_weights_are_stored_once_and_found_again(tmp_path: Path) -> None:
    settings = overrides("train.lr=3e-4", "train.steps=6", 'model.task="masked-lm"', FSDP)
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, 2) == [0, 0], outcome(other)
    assert furthest(one.final, other.final) <= 1e-6
    assert furthest(one.checkpoint(6), other.checkpoint(6)) <= 1e-6


def test_parts_go_on_to_the_bit(tmp_path: Path) -> None:
    settings = overrides("train.lr=3e-4", "train.micro_batch_size=2", 'train.loss="trouble_loss:loss"', FSDP)
    stopped_and_through(tmp_path, settings)


def test_parts_are_evaluated_before_they_are_trained(tmp_path: Path) -> None:
    """Packed texts are compared with the same texts one by one before the first step: passes without gradients come first."""
    gpt = 'model.config={ model_type = "gpt2", n_embd = 32, n_layer = 2, n_head = 2, n_positions = 64 }'
    settings = overrides("train.lr=3e-4", 'model.task="causal-lm"', gpt, "train.packing=true", "train.batch_size=5",
                         "train.micro_batch_size=1", FSDP)  # fmt: skip
    one, other = make_run(tmp_path, settings, "one"), make_run(tmp_path, settings, "several")
    assert train(one) == 0
    assert train_ranks(other, 3) == [0, 0, 0], outcome(other)
    assert furthest(one.final, other.final) <= 1e-6
