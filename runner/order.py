"""Which samples make up which update: a function of (seed, epoch), so that a position in it is just a number.
Pure.

A *window* is the samples of one optimizer update, cut into micro-batches. Resuming is starting at window k;
nothing is drawn, fetched or dropped on the way there.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from typing import overload

from runner.seeds import seed_for

POOL_WINDOWS = 50
"""Samples are sorted by length within shuffled pools of so many windows: enough for like lengths (0.95 and
more of the padded positions are real), little enough that every epoch mixes anew."""

PAD_TO = 8
"""Batches are padded to multiples of this: the widths that matrix units are fast at."""

Window = list[list[int]]


class Cut:
    """How windows are cut into micro-batches: at most ``size`` samples and, where ``tokens`` is not 0, at most so many
    padded positions. ``width``: what every sample is padded to; 0: the longest of its micro-batch."""

    def __init__(self, size: int, tokens: int = 0, lengths: Sequence[int] = (), width: int = 0) -> None:
        self.size, self.tokens, self._lengths, self._width = size, tokens, lengths, width

    def padded(self, index: int) -> int:
        """Return the positions that sample ``index`` takes when it is the longest of its micro-batch."""
        return -(-(self._width or int(self._lengths[index])) // PAD_TO) * PAD_TO

    def window(self, samples: list[int]) -> Window:
        if not samples:
            return []
        if not self.tokens:
            return micro_batches(samples, self.size)
        found: Window = [[]]
        widest = 0
        for index in samples:
            wider = max(widest, self.padded(index))
            if found[-1] and (len(found[-1]) == self.size or (len(found[-1]) + 1) * wider > self.tokens):
                found.append([])
                wider = self.padded(index)
            found[-1].append(index)
            widest = wider
        return found


class EpochWindows(Sequence[Window]):
    """The windows of one epoch, cut when they are asked for: one flat array of sample numbers, however many."""

    def __init__(
        self,
        order: array[int],
        places: Sequence[int],
        batch_size: int,
        cut: Cut,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        """``rank`` of ``ranks``: whose part of each window this is."""
        self._order, self._places, self._batch_size, self._cut = order, places, batch_size, cut
        self._rank, self._ranks = rank, ranks

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Window: ...
    @overload
    def __getitem__(self, index: slice) -> EpochWindows: ...
    def __getitem__(self, index: int | slice) -> Window | EpochWindows:
        if isinstance(index, slice):
            places = self._places[index]
            return EpochWindows(self._order, places, self._batch_size, self._cut, self._rank, self._ranks)
        start = self._places[index] * self._batch_size
        return dealt(list(self._order[start : start + self._batch_size]), self._cut, self._rank, self._ranks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochWindows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def windows_of_epoch(
    lengths: Sequence[int],
    seed: int,
    epoch: int,
    batch_size: int,
    micro_batch_size: int,
    bucketing: bool,
    micro_batch_tokens: int = 0,
    width: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> EpochWindows:
    """Return the windows of ``epoch``, each sample in exactly one; only one window may be smaller than the
    rest.

    With ``bucketing`` the windows hold samples of like length and are then shuffled, since neighbouring
    windows of like length would make the loss swing with the length.
    """
    generator = random.Random(seed_for(seed, "order", epoch))
    order = array("q", range(len(lengths)))
    generator.shuffle(order)  # type: ignore[arg-type,unused-ignore]
    if bucketing:
        _sort_in_pools(order, lengths, batch_size * POOL_WINDOWS)
    places = array("q", range(-(-len(order) // batch_size)))
    if bucketing:
        generator.shuffle(places)  # type: ignore[arg-type,unused-ignore]
    cut = Cut(micro_batch_size, micro_batch_tokens, lengths, width)
    return EpochWindows(order, places, batch_size, cut, rank, ranks)


def dealt(samples: list[int], cut: Cut, rank: int, ranks: int) -> Window:
    """Return one rank's micro-batches of a window: every ``ranks``-th sample, as many micro-batches as any rank has.

    A rank that has fewer computes a stand-in and counts nothing of it: a sample's number below 0 (``~index``).
    """
    if ranks == 1:
        return cut.window(samples)
    parts = [cut.window(samples[first::ranks]) for first in range(ranks)]
    missing = max(map(len, parts)) - len(parts[rank])
    return [*parts[rank], *([[~samples[0]]] * missing)]


def _sort_in_pools(order: array[int], lengths: Sequence[int], pool: int) -> None:
    for start in range(0, len(order), pool):
        part = sorted(order[start : start + pool], key=lambda index: int(lengths[index]))
        order[start : start + pool] = array("q", part)


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
