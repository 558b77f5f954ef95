"""What to turn on until a run fits: no more than it takes, least loss of speed first, each with what it saves and costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from doctor.card_choice import with_micro_batch
from doctor.card_state import CardState
from doctor.corrected import scaled_peak
from doctor.levers import Lever, accumulated, levers
from doctor.memory_plan import Remedy
from doctor.roofline import step_time
from doctor.tables.gpus import row_of
from runner.estimate import MemoryRequest

WORTH = 0.01
"""What saves less of the peak is not worth a line."""

Peak = Callable[[MemoryRequest], int]


def remedies(
    request: MemoryRequest,
    card: CardState,
    factor: float = 1.0,
    host_free_bytes: int | None = None,
    by_profile: bool = False,
) -> Iterator[Remedy]:
    """Yield what to turn on, each on top of the last, until the run fits; everything, where it does not.

    ``factor``: what a trace or a measurement found the tensors to be, of what the arithmetic says. ``by_profile``: only what
    a profile can turn on, with its settings.
    """

    def peak(changed: MemoryRequest) -> int:
        return scaled_peak(changed, factor)

    taken = needed(request, levers(card, factor, host_free_bytes, by_profile), peak, card.free_bytes)
    row, now = row_of(card.name), request
    for lever, after in _applied(request, taken, peak, card.free_bytes):
        yield Remedy(
            title=lever.title(after), changes=_changes(now, after), peak_bytes=peak(after),
            saved_bytes=peak(now) - peak(after), time_factor=_time_factor(now, after, row),
            fits=peak(after) <= card.free_bytes, setting=lever.setting(after) if by_profile and lever.setting else "",
        )  # fmt: skip
        now = after


def needed(request: MemoryRequest, all_levers: Sequence[Lever], peak: Peak, free_bytes: int) -> list[Lever]:
    """Return the levers to turn on: those that save something up to the first fit, without those that it does not take.

    What comes later may save what came before it would have: LoRA's optimizer states need no 8 bits any more.
    """
    steps = _applied(request, all_levers, peak, free_bytes)
    taken = [lever for lever, _ in steps]
    if not steps or peak(steps[-1][1]) > free_bytes:
        return taken
    for lever in [one for one in reversed(taken[:-1]) if one.loses]:
        rest = [one for one in taken if one is not lever]
        again = _applied(request, rest, peak, free_bytes)
        if again and peak(again[-1][1]) <= free_bytes:
            taken = [one for one, _ in again]
    return _no_smaller_than_needed(request, taken, peak, free_bytes)


def _no_smaller_than_needed(
    request: MemoryRequest, taken: list[Lever], peak: Peak, free_bytes: int
) -> list[Lever]:
    """Take the largest micro-batch with which the rest of the levers fits: it was chosen before the later ones were."""
    cuts = [one for one in taken if one.title is accumulated]
    if not cuts:
        return taken
    micro = request.batch_size
    while micro > 1:
        micro = -(-micro // 2)
        cut = cuts[0]._replace(change=lambda one, micro=micro: with_micro_batch(one, micro))  # type: ignore[misc]
        tried = [cut if one is cuts[0] else one for one in taken if one is cuts[0] or one not in cuts]
        steps = _applied(request, tried, peak, free_bytes)
        if peak(steps[-1][1]) <= free_bytes:
            return [one for one, _ in steps]
    return taken


def _applied(
    request: MemoryRequest, all_levers: Sequence[Lever], peak: Peak, free_bytes: int
) -> list[tuple[Lever, MemoryRequest]]:
    """Turn on one after another until it fits; return each that saved something, with the run as it is then."""
    steps: list[tuple[Lever, MemoryRequest]] = []
    now = request
    for lever in all_levers:
        if peak(now) <= free_bytes:
            break
        changed = lever.change(now)
        if changed is not None and peak(changed) <= (1 - WORTH) * peak(now):
            steps.append((lever, changed))
            now = changed
    return steps


def _changes(before: MemoryRequest, after: MemoryRequest) -> dict[str, str | int | bool]:
    names = [name for name in MemoryRequest.__struct_fields__ if name != "config"]
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}


def _time_factor(before: MemoryRequest, after: MemoryRequest, row: dict[str, Any] | None) -> float | None:
    """An update's time, since accumulation makes one of several micro-batches."""
    times = [step_time(one, row) if row else None for one in (before, after)]
    apart = [(one.cards, one.sharding) for one in (before, after)]
    if times[0] is None or times[1] is None or apart[0] != apart[1]:
        return None  # what goes between cards is not in the roofline
    return times[1].seconds / times[0].seconds
