"""Measured pairs made into the rows of a table. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, Literal

from doctor.bench_levers import Changes
from doctor.bench_records import Loss, Measured, Row
from doctor.bench_stats import Interval, interval_of
from runner.text import Text

EQUAL = 2e-5
"""Relative: sums in another order (another cut, other padding) differ in the last digits of fp32."""
ROUNDED = 5e-2
"""Relative: what bf16's eight bits make of a loss and a gradient norm."""

Pair = tuple[Measured, Measured]
"""Before, and the variant measured next to it."""
Verdict = Literal["faster", "slower", "no proven difference", "too few pairs"]
_VERDICTS: dict[str, Verdict] = {
    "more": "faster", "less": "slower", "no proven difference": "no proven difference", "too few pairs": "too few pairs",
}  # fmt: skip


def verdict_of(speed: Interval) -> Verdict:
    return _VERDICTS[speed.verdict]


def before_row(title: Text, settings: dict[str, Any], measured: Sequence[Measured]) -> Row:
    return Row(name="before", title=title, settings=settings, verdict="before", loss="equal", **_figures(measured))  # fmt: skip


def variant_row(name: str, title: Text, settings: dict[str, Any], pairs: Sequence[Pair], changes: Changes) -> Row:  # fmt: skip
    """Return the row of a variant that was measured at least once."""
    speed = interval_of([pace(after, changes) / pace(before, changes) for before, after in pairs])
    cpu = interval_of([_cpu(after, changes) / _cpu(before, changes) for before, after in pairs])
    difference = max(loss_difference(*pair) for pair in pairs)
    return Row(
        name=name, title=title, settings=settings, speed=speed, cpu=cpu, verdict=verdict_of(speed),
        memory_ratio=statistics.median(after.peak_bytes / before.peak_bytes for before, after in pairs),
        loss=loss_word(difference, changes), loss_difference=difference, **_figures([after for _, after in pairs]),
    )  # fmt: skip


def loss_difference(before: Measured, after: Measured) -> float:
    """Return how far the first samples' loss and gradient norm are apart, relatively: the larger of the two."""
    figures = ((before.loss, after.loss), (before.grad_norm, after.grad_norm))
    return max(abs(a - b) / max(abs(a), 1e-12) for a, b in figures)


def loss_word(difference: float, changes: Changes) -> Loss:
    if changes == "rows":
        return "other rows"
    if difference <= EQUAL:
        return "equal"
    return "rounding" if changes == "rounding" and difference <= ROUNDED else "differs"


def pace(measured: Measured, changes: Changes) -> float:
    return (measured.tokens if changes == "rows" else measured.samples) / measured.wall_s


def _cpu(measured: Measured, changes: Changes) -> float:
    return measured.cpu_s / (measured.tokens if changes == "rows" else measured.samples)


def _figures(measured: Sequence[Measured]) -> dict[str, Any]:
    """Return the medians over the runs of one variant."""
    one = measured[0]
    last_third = one.losses[-max(1, len(one.losses) // 3) :]
    return {
        "runs": len(measured),
        "samples_per_s": statistics.median(each.samples_per_s for each in measured),
        "tokens_per_s": statistics.median(each.tokens / each.wall_s for each in measured),
        "padding_share": 1 - one.tokens / one.padded_tokens,
        "peak_bytes": round(statistics.median(each.peak_bytes for each in measured)),
        "warm_up_s": statistics.median(each.warm_up_s for each in measured),
        "final_loss": statistics.fmean(last_third),
    }
