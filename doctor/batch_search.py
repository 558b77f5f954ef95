"""The largest batch that fits, found by trying: doubled until one does not fit, then the gap halved. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from doctor.measuring import Measured
from doctor.memory_troubles import OutOfTime

MOST = 4096
"""Looked for no further: such a batch is no memory question any more."""
MARGIN = 0.08
"""Left free of the limit: later batches differ, the allocator's holes grow."""
FINENESS = 16
"""The gap is halved until it is a sixteenth of the batch: what a card gains below that is within the margin."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried, and the largest that fits with the margin kept."""

    largest: int
    """0: not even one sample."""
    tried: tuple[Measured, ...]
    complete: bool
    """False: the time was used up, and a larger one may fit."""
    interrupted: bool = False
    """By hand, which is why it is not complete."""
    most: bool = False
    """Everything up to the largest size looked for fits."""


def find_largest(
    measure: Callable[[int], Measured], limit_bytes: Callable[[], int], start: int = 1
) -> Search:
    """Try batches from ``start`` on; one counts as fitting when it leaves :data:`MARGIN` of the limit free.

    ``limit_bytes``: asked after each try, since the device itself says what holds; 0: no limit but the device's own no.
    """
    tried: dict[int, Measured] = {}

    def fits(batch: int) -> bool:
        tried[batch] = measure(batch)
        limit = limit_bytes()
        return tried[batch].fits and (not limit or tried[batch].process_bytes <= (1 - MARGIN) * limit)

    low, high = 0, MOST + 1
    try:
        batch = min(start, MOST)
        while low < batch < high:
            low, high = (batch, high) if fits(batch) else (low, batch)
            batch = _next(low, high)
    except OutOfTime:
        return Search(largest=low, tried=tuple(tried.values()), complete=False)
    except KeyboardInterrupt:
        if not tried:
            raise
        return Search(largest=low, tried=tuple(tried.values()), complete=False, interrupted=True)
    return Search(largest=low, tried=tuple(tried.values()), complete=True, most=high > MOST)


def _next(low: int, high: int) -> int:
    """Return what to try next between what fits and what does not; ``low`` itself: enough is known."""
    if high > MOST:
        return min(MOST, 2 * low) if low < MOST else low
    if low == 0:
        return high // 2
    step = 1
    while step * 2 <= low // FINENESS:
        step *= 2
    middle = (low + high) // 2 // step * step
    return middle if middle > low else low
