"""Ratios with intervals: what the words promise, on numbers whose answer is known."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from doctor.bench_stats import cut_of, interval_of


@pytest.mark.parametrize(
    ("pairs", "below", "coverage"),
    [(6, 0, 0.96875), (7, 2, 0.953125), (8, 3, 0.9609375), (10, 8, 0.951171875)],
    ids=str,
)
def test_the_cut_is_that_of_the_signed_rank_table(pairs: int, below: int, coverage: float) -> None:
    """Critical values for two-sided 0.05: 0, 2, 3, 8 (any table of Wilcoxon's T)."""
    cut, found = cut_of(pairs)
    assert cut == below and found == pytest.approx(coverage)


def test_the_coverage_is_counted_over_all_signs() -> None:
    def statistic(signs: tuple[int, ...]) -> int:
        return sum(rank for rank, sign in enumerate(signs, 1) if sign)

    below, coverage = cut_of(9)
    outcomes = [statistic(signs) for signs in itertools.product((0, 1), repeat=9)]
    inside = sum(below < one < 45 - below for one in outcomes) / len(outcomes)
    assert inside == pytest.approx(coverage)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.3, 1.4, 1.35, 1.31, 1.38, 1.36], "more"),
        ([0.7, 0.8, 0.75, 0.71, 0.78, 0.76], "less"),
        ([0.98, 1.03, 1.01, 0.99, 1.02, 0.97], "no proven difference"),
        ([1.3, 1.4, 1.35], "more"),
        ([1.0, 1.5, 1.2], "no proven difference"),
        ([2.0, 2.1], "too few pairs"),
        ([5.0], "too few pairs"),
    ],
    ids=["six faster", "six slower", "six alike", "three close", "three apart", "two", "one"],
)
def test_a_verdict_needs_an_interval_that_leaves_out_one(ratios: list[float], verdict: str) -> None:
    assert interval_of(ratios).verdict == verdict


def test_the_interval_of_the_inverse_is_the_inverse_interval() -> None:
    ratios = [1.1, 1.4, 1.2, 1.15, 1.3, 1.25, 1.05, 1.5]
    there, back = interval_of(ratios), interval_of([1 / one for one in ratios])
    assert there.low and there.high and back.low and back.high
    assert (1 / back.high, 1 / back.ratio, 1 / back.low) == pytest.approx(
        (there.low, there.ratio, there.high)
    )


@pytest.mark.parametrize("pairs", [3, 5, 6, 8])
def test_the_true_ratio_lies_in_95_of_100_intervals(pairs: int) -> None:
    draw = random.Random(pairs)
    found = [interval_of([math.exp(draw.gauss(math.log(1.2), 0.1)) for _ in range(pairs)]) for _ in range(2000)]  # fmt: skip
    inside = sum(one.low is not None and one.high is not None and one.low <= 1.2 <= one.high for one in found)
    assert 0.935 < inside / 2000 < 0.98


@pytest.mark.parametrize("ratios", [[], [0.0], [float("nan"), 1.0]], ids=["none", "zero", "nan"])
def test_what_is_no_ratio_is_refused(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        interval_of(ratios)
