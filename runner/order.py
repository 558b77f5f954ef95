"""Which samples make up which update: a function of (seed, epoch), so that a position in it is just a number.
Pure.

A *window* is the samples of one optimizer update, cut into micro-batches. Resuming is starting at window k;
nothing is drawn, fetched or dropped on the way there.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

from runner.seeds import seed_for

POOL_WINDOWS = 50
"""Samples are sorted by length within shuffled pools of so many windows: enough for like lengths (0.95 and
more of the padded positions are real), little enough that every epoch mixes anew."""

Window = list[list[int]]


def windows_of_epoch(
    lengths: Sequence[int], seed: int, epoch: int, batch_size: int, micro_batch_size: int, bucketing: bool
) -> list[Window]:
    """Return the windows of ``epoch``, each sample in exactly one; only one window may be smaller than the
    rest.

    With ``bucketing`` the windows hold samples of like length and are then shuffled, since neighbouring
    windows of like length would make the loss swing with the length.
    """
    generator = random.Random(seed_for(seed, "order", epoch))
    order = list(range(len(lengths)))
    generator.shuffle(order)
    if bucketing:
        order = _sorted_in_pools(order, lengths, batch_size * POOL_WINDOWS)
    windows = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    if bucketing:
        generator.shuffle(windows)
    return [micro_batches(window, micro_batch_size) for window in windows]


def _sorted_in_pools(order: list[int], lengths: Sequence[int], pool: int) -> list[int]:
    done: list[int] = []
    for start in range(0, len(order), pool):
        done += sorted(order[start : start + pool], key=lambda index: int(lengths[index]))
    return done


def micro_batches(window: list[int], size: int) -> Window:
    """Cut the samples of one window; the cut decides memory, never the result."""
    return [window[start : start + size] for start in range(0, len(window), size)]


def windows_total(samples: int, batch_size: int, epochs: int, steps: int | None) -> int:
    """Return the planned number of windows; the last, smaller one of an epoch counts."""
    return steps if steps is not None else epochs * -(-samples // batch_size)


def position_of(window: int, samples: int, batch_size: int) -> tuple[int, int]:
    """Return ``(epoch, window within it)`` of the window with running number ``window``, all counted from
    0."""
    return divmod(window, -(-samples // batch_size))


def stratified_split(classes: Sequence[int] | None, count: int, share: float, seed: int) -> list[int]:
    """Return the rows held out, sorted: ``share`` of each class (of all rows where there are no classes).

    A class of two rows or more gives at least one and keeps at least one.
    """
    groups: dict[int, array[int]] = {}
    for row in range(count):
        groups.setdefault(int(classes[row]) if classes is not None else 0, array("q")).append(row)
    held_out: list[int] = []
    for key, rows in sorted(groups.items()):
        random.Random(seed_for(seed, "split", key)).shuffle(rows)
        wanted = min(max(1, round(len(rows) * share)), len(rows) - 1)
        held_out += rows[: max(0, wanted)]
    return sorted(held_out)
