"""Whether two runs differ by more than chance: losses by the curves' own swing, shares by the number of held-out rows. Pure.

One run each says nothing of another seed; what is weighed here is only whether these two can be told apart at all.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from doctor.bench_stats import T95
from runner.events import number
from runner.state import Curve, RunState

BLOCKS = 10
LEAST_BLOCKS = 5
LAST_SHARE = 0.25
"""Of the steps that both made: there the curves have come as far as they will."""
_NORMAL = 1.96

_IS_SHARE = re.compile(r"(?:^|_)(?:accuracy|acc|top_?\d+)$", re.IGNORECASE)
_HIGHER = re.compile(
    r"(?:^|_)(?:accuracy|acc|top_?\d+|f1|precision|recall|auc|auroc|roc_auc|map|bleu|rouge\w*|mcc|matthews_correlation|r2|"
    r"pearson\w*|spearman\w*)(?:$|_)", re.IGNORECASE,
)  # fmt: skip
_LOWER = re.compile(r"(?:^|_)(?:loss|perplexity|ppl|wer|cer|mae|mse|rmse|error)(?:$|_)", re.IGNORECASE)


@dataclass(frozen=True)
class Weighed:
    """One difference and what chance alone makes of it."""

    name: str
    difference: float
    """B minus A."""
    better: str
    """``a``, ``b``, or empty: nobody knows which way is better, or they are equal."""
    chance: float | None
    """So much either way is to be expected without any cause (95 %); None: too little is known to say."""
    rows: int | None = None
    """Held-out rows behind a share."""
    first_step: float | None = None
    last_step: float | None = None
    """Of a curve: the steps that were compared."""

    @property
    def is_more_than_chance(self) -> bool | None:
        return None if self.chance is None else abs(self.difference) > self.chance


def weigh(a: RunState, b: RunState) -> Iterator[Weighed]:
    """Yield what can be said of each difference; what both have alike is left out."""
    curve = weigh_curves("loss", a.loss, b.loss)
    if curve is not None:
        yield curve
    rows = _rows(a, b)
    for name in dict.fromkeys(["eval_loss", *a.metrics]):
        one, other = (
            _last(state.eval_loss if name == "eval_loss" else state.metrics.get(name)) for state in (a, b)
        )
        if (
            one is not None
            and other is not None
            and one != other
            and math.isfinite(one)
            and math.isfinite(other)
        ):
            chance = share_chance(one, other, rows) if rows and _IS_SHARE.search(name) else None
            yield Weighed(name, other - one, _better(name, other - one), chance, rows if chance is not None else None)  # fmt: skip


def weigh_curves(name: str, a: Curve, b: Curve) -> Weighed | None:
    """Compare the last quarter of the steps that both made, block by block; None: equal there, or too few points."""
    if not a.steps or not b.steps:
        return None
    last = min(a.steps[-1], b.steps[-1])
    first = max(a.steps[0], b.steps[0])
    begin = last - LAST_SHARE * (last - first)
    pairs = list(_block_means(a, b, begin, last))
    differences = [other - one for one, other in pairs]
    if len(pairs) < LEAST_BLOCKS or not any(differences):
        return None
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return Weighed(name, mean, _better(name, mean), T95[len(pairs) - 1] * error, None, begin, last)


def _block_means(a: Curve, b: Curve, begin: float, last: float) -> Iterator[tuple[float, float]]:
    """Yield the means of both curves in each of up to :data:`BLOCKS` equal parts of the steps."""
    points = min(sum(begin <= step <= last for step in curve.steps) for curve in (a, b))
    blocks = min(BLOCKS, points // 2)
    size = (last - begin) / blocks if blocks else 0.0
    for index in range(blocks):
        low, high = begin + index * size, last if index == blocks - 1 else begin + (index + 1) * size
        one, other = (_mean(curve, low, high, index == blocks - 1) for curve in (a, b))
        if one is not None and other is not None:
            yield one, other


def _mean(curve: Curve, low: float, high: float, with_end: bool) -> float | None:
    values = [
        value
        for step, value in zip(curve.steps, curve.values, strict=True)
        if low <= step and (step < high or (with_end and step == high)) and math.isfinite(value)
    ]
    return statistics.fmean(values) if values else None


def share_chance(one: float, other: float, rows: int) -> float | None:
    """Return how far two shares of ``rows`` rows may lie apart by chance (95 %); None: they are no shares.

    As for independent rows; on the same rows both runs mostly err alike, so it is if anything too wide.
    """
    if not (0 <= one <= 1 and 0 <= other <= 1):
        return None
    return _NORMAL * math.sqrt((one * (1 - one) + other * (1 - other)) / rows)


def _rows(a: RunState, b: RunState) -> int | None:
    """Return over how many rows both were evaluated at the end; None: not said, or not over as many."""
    counts = {
        number(state.evaluations[-1].data.get("samples")) if state.evaluations else None for state in (a, b)
    }
    count = counts.pop() if len(counts) == 1 else None
    return int(count) if count else None


def _last(curve: Curve | None) -> float | None:
    return curve.values[-1] if curve is not None and curve.values else None


def _better(name: str, difference: float) -> str:
    if difference == 0 or not (_HIGHER.search(name) or _LOWER.search(name)):
        return ""
    is_higher_better = bool(_HIGHER.search(name)) and not _LOWER.search(name)
    return "b" if (difference > 0) == is_higher_better else "a"
