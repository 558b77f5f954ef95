"""Pairs of a command's runs made into the rows of a table. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from doctor.bench_command_levers import Outside
from doctor.bench_command_pace import Paced
from doctor.bench_order import Variant
from doctor.bench_records import Loss, Row
from doctor.bench_rows import EQUAL, ROUNDED, verdict_of
from doctor.bench_stats import interval_of
from runner.text import t


def rows_of(variants: Sequence[Variant[Outside, Paced]], skipped: Sequence[Outside]) -> list[Row]:
    """Return the lines of the table: each variant, and what was skipped."""
    befores = [before for one in variants for before, _ in one.pairs]
    own = max((apart(befores[0], one) or 0.0 for one in befores[1:]), default=0.0)
    return [_row(one, own) for one in variants] + [
        Row(name=one.name, title=one.title, verdict="skipped", why=one.skipped) for one in skipped
    ]


def apart(one: Paced, other: Paced) -> float | None:
    """Return how far the losses of the steps that both told are apart, relatively: the furthest. None: there are none."""
    both = one.losses.keys() & other.losses.keys()
    return max((abs(one.losses[step] - other.losses[step]) / max(abs(one.losses[step]), 1e-12) for step in both), default=None)  # fmt: skip


def _row(one: Variant[Outside, Paced], own: float) -> Row:
    """``own``: how far the command's losses are apart from run to run as it is."""
    lever, pairs = (
        one.lever,
        [(before, after) for before, after in one.pairs if before.by_steps == after.by_steps],
    )
    if not pairs:
        why = one.failed or t("not reached")
        return Row(name=lever.name, title=lever.title, verdict="failed" if one.failed else "skipped", why=why)
    speed = interval_of([after.pace / before.pace for before, after in pairs])
    held = [
        after.peak_bytes / before.peak_bytes
        for before, after in pairs
        if before.peak_bytes and after.peak_bytes
    ]
    differences = [found for pair in pairs if (found := apart(*pair)) is not None]
    return Row(
        name=lever.name, title=lever.title, settings=dict(lever.variables), runs=len(pairs), speed=speed, verdict=verdict_of(speed),
        memory_ratio=statistics.median(held) if held else None, why=one.failed or lever.changes,
        loss=_loss_word(differences, own, lever), loss_difference=max(differences, default=None),
    )  # fmt: skip


def _loss_word(differences: list[float], own: float, lever: Outside) -> Loss:
    if not differences or own > EQUAL:  # without a seed of its own it says nothing
        return "not compared"
    if max(differences) <= EQUAL:
        return "equal"
    return "rounding" if lever.changes and max(differences) <= ROUNDED else "differs"
