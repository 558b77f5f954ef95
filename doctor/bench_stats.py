"""From a few pairs of measurements to one ratio with its interval. Pure.

From six pairs on: the median of all pairwise means of the log ratios, with Wilcoxon's exact signed-rank interval, which
assumes only that pairs differ symmetrically. With three to five: Student's t on the log ratios, which assumes that they
are normally distributed. With fewer nothing is claimed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from doctor.model import Record

WANTED = 0.95
LEAST_FOR_RANKS = 6
"""With five pairs no rank interval reaches 95 %."""
LEAST_PAIRS = 3

T95 = {2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622}
"""Two-sided 95 % quantiles of Student's t, by degrees of freedom (any table)."""

Method = Literal["signed-rank", "t", "none"]


class Interval(Record, frozen=True, kw_only=True):
    """A ratio of two variants: how many times the first is of the second."""

    ratio: float
    low: float | None = None
    high: float | None = None
    pairs: int
    coverage: float = 0.0
    """Of the interval; 0: there is none."""
    method: Method = "none"

    @property
    def verdict(self) -> Literal["more", "less", "no proven difference", "too few pairs"]:
        if self.low is None or self.high is None:
            return "too few pairs"
        if self.low > 1.0:
            return "more"
        return "less" if self.high < 1.0 else "no proven difference"


def interval_of(ratios: Sequence[float]) -> Interval:
    """Return the interval of positive ratios, one a pair.

    Raises:
        ValueError: no ratio, or one that is not positive and finite.
    """
    if not ratios or not all(math.isfinite(one) and one > 0 for one in ratios):
        raise ValueError(f"ratios are positive and finite: {list(ratios)}")
    logs = [math.log(one) for one in ratios]
    if len(logs) >= LEAST_FOR_RANKS:
        return _by_ranks(logs)
    middle = statistics.median(logs)
    if len(logs) < LEAST_PAIRS:
        return Interval(ratio=math.exp(middle), pairs=len(logs))
    mean = statistics.fmean(logs)
    half = T95[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(
        ratio=math.exp(middle), low=math.exp(min(mean - half, middle)), high=math.exp(max(mean + half, middle)),
        pairs=len(logs), coverage=WANTED, method="t",
    )  # fmt: skip


def _by_ranks(logs: list[float]) -> Interval:
    """Return the Hodges-Lehmann estimate and the interval between the k-th smallest and largest pairwise mean."""
    means = sorted((a + b) / 2 for index, a in enumerate(logs) for b in logs[index:])
    below, coverage = cut_of(len(logs))
    return Interval(
        ratio=math.exp(statistics.median(means)), low=math.exp(means[below]), high=math.exp(means[-1 - below]),
        pairs=len(logs), coverage=coverage, method="signed-rank",
    )  # fmt: skip


def cut_of(pairs: int, wanted: float = WANTED) -> tuple[int, float]:
    """Return how many pairwise means are left off at each end, and the coverage of what stays.

    The signed-rank statistic of n pairs is a sum of a random subset of 1..n, each subset as likely.
    """
    ways = [1, *[0] * (pairs * (pairs + 1) // 2)]
    for rank in range(1, pairs + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    below, tail = 0, ways[0]
    while 1 - 2 * (tail + ways[below + 1]) / 2**pairs >= wanted:
        below += 1
        tail += ways[below]
    return below, 1 - 2 * tail / 2**pairs
