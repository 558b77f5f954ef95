"""The order of samples: a function of seed and epoch, every sample once, a position is a number."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from runner.order import position_of, stratified_split, windows_of_epoch, windows_total
from runner.profile import TrainSection
from runner.schedule import lr_at

LENGTHS = [random.Random(number).randint(3, 500) for number in range(2003)]


def flat(windows: Sequence[list[list[int]]]) -> list[int]:
    return [sample for window in windows for micro in window for sample in micro]


@pytest.mark.parametrize("bucketing", [False, True])
def test_every_sample_once_and_one_window_at_most_is_smaller(bucketing: bool) -> None:
    windows = windows_of_epoch(LENGTHS, 42, 3, 16, 4, bucketing)
    assert sorted(flat(windows)) == list(range(2003))
    sizes = [sum(map(len, window)) for window in windows]
    assert sorted(sizes)[1:] == [16] * 125 and min(sizes) == 3


@pytest.mark.parametrize("bucketing", [False, True])
def test_epochs_differ_and_repeat(bucketing: bool) -> None:
    first, second = (windows_of_epoch(LENGTHS, 42, epoch, 16, 4, bucketing) for epoch in (0, 1))
    assert first != second
    assert windows_of_epoch(LENGTHS, 42, 0, 16, 4, bucketing) == first
    assert windows_of_epoch(LENGTHS, 43, 0, 16, 4, bucketing) != second


def test_the_micro_batch_changes_the_cut_and_not_the_windows() -> None:
    whole, parts = (windows_of_epoch(LENGTHS, 42, 0, 16, micro, True) for micro in (16, 3))
    assert [flat([window]) for window in whole] == [flat([window]) for window in parts]


def padded(windows: Sequence[list[list[int]]]) -> int:
    return sum(
        len(micro) * max(LENGTHS[sample] for sample in micro) for window in windows for micro in window
    )


def test_bucketing_pads_little_and_neighbours_are_not_alike() -> None:
    plain, bucketed = (windows_of_epoch(LENGTHS, 42, 0, 16, 16, choice) for choice in (False, True))
    assert sum(LENGTHS) / padded(bucketed) > 0.95 > 0.6 > sum(LENGTHS) / padded(plain)
    means = [sum(LENGTHS[sample] for sample in flat([window])) / 16 for window in bucketed]
    rising = sum(later > earlier for earlier, later in itertools.pairwise(means))
    assert 0.4 < rising / len(means) < 0.6


def test_planned_windows_and_positions_count_the_small_one() -> None:
    assert windows_total(2003, 16, 3, None) == 378
    assert windows_total(2003, 16, 3, 50) == 50
    assert position_of(126, 2003, 16) == (1, 0)
    assert position_of(251, 2003, 16) == (1, 125)


def test_a_class_of_one_is_trained_on_and_a_class_of_two_is_in_both() -> None:
    assert stratified_split([0, 1, 1], 3, 0.5, 1) in ([1], [2])
    assert stratified_split(None, 10, 0.1, 1) == stratified_split(None, 10, 0.1, 1)


SCHEDULES = {
    "linear": "get_linear_schedule_with_warmup",
    "cosine": "get_cosine_schedule_with_warmup",
    "constant": "get_constant_schedule_with_warmup",
}


@pytest.mark.train
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_schedule_is_that_of_transformers(name: str) -> None:
    import torch
    import transformers

    train = TrainSection(lr=1e-3, schedule=name, warmup=0.1)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    extra = {} if name == "constant" else {"num_training_steps": 50}
    theirs = getattr(transformers, SCHEDULES[name])(optimizer, num_warmup_steps=5, **extra)
    for update in range(50):
        assert lr_at(update, 50, train) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        theirs.step()


def test_the_polynomial_schedule_with_power_one_is_linear() -> None:
    linear, polynomial = (
        TrainSection(warmup=3),
        TrainSection(warmup=3, schedule="polynomial", polynomial_power=1.0),
    )
    assert [lr_at(n, 20, linear) for n in range(20)] == pytest.approx(
        [lr_at(n, 20, polynomial) for n in range(20)]
    )
