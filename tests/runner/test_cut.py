"""Micro-batches by padded tokens: nothing lost, the budget kept, the same update."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runner.order import Cut, windows_of_epoch
from tests.runner.tiny import events, last_losses, make_run, train

_DRAW = random.Random(3)
LENGTHS = [_DRAW.randint(3, 512) for _ in range(200)]


@pytest.mark.parametrize("width", [0, 512], ids=["to the longest", "to max_length"])
@pytest.mark.parametrize("tokens", [512, 1024, 4096])
def test_every_sample_stands_once_and_no_micro_batch_has_more_padded_positions_than_asked(
    tokens: int, width: int
) -> None:
    cut = Cut(16, tokens, LENGTHS, width)
    for window in windows_of_epoch(LENGTHS, 1, 0, 16, 16, True, tokens, width):
        assert len(window) >= 1 and sum(map(len, window)) <= 16
        for part in window:
            assert len(part) == 1 or len(part) * max(map(cut.padded, part)) <= tokens
    whole = [i for window in windows_of_epoch(LENGTHS, 1, 0, 16, 16, True, tokens, width) for part in window for i in part]  # fmt: skip
    assert sorted(whole) == list(range(200))


def test_the_budget_cuts_windows_but_never_changes_which_samples_they_hold() -> None:
    plain = windows_of_epoch(LENGTHS, 1, 0, 16, 16, True)
    cut = windows_of_epoch(LENGTHS, 1, 0, 16, 16, True, 2048)
    flat = [[[i for part in window for i in part] for window in windows] for windows in (plain, cut)]
    assert flat[0] == flat[1]
    assert any(len(window) > 1 for window in cut) and any(len(window) == 1 for window in cut)


def test_one_sample_longer_than_the_budget_goes_alone() -> None:
    assert Cut(8, 16, [4, 4, 400, 4]).window([0, 1, 2, 3]) == [[0, 1], [2], [3]]


def test_the_size_still_holds_beside_the_budget() -> None:
    assert [len(part) for part in Cut(2, 10_000, [4] * 5).window(list(range(5)))] == [2, 2, 1]


@pytest.mark.train
def test_a_token_budget_and_padding_to_max_length_train_the_same_losses_without_dropout(tmp_path: Path) -> None:  # fmt: skip
    common = ["model.dropout=0.0", "train.epochs=1", "train.accumulation=1", "train.micro_batch_size=8"]
    plain = make_run(tmp_path, common, "plain")
    cut = make_run(tmp_path, [*common, "train.micro_batch_tokens=64"], "cut")
    padded = make_run(tmp_path, [*common, "train.pad_to=max_length"], "padded")
    assert train(plain) == train(cut) == train(padded) == 0
    for other in (cut, padded):
        assert last_losses(other) == pytest.approx(last_losses(plain), rel=1e-4)
    step = events(padded, "step")[0].data
    assert step["padded_tokens"] == step["samples"] * 32
    assert events(cut, "step")[0].data["padded_tokens"] < events(padded, "step")[0].data["padded_tokens"]
