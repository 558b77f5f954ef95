"""A run as it was at any moment: the same fold over the same files, cut at that moment. Nothing here writes.

A short run is folded from its beginning. Of a long one the moment is found by bisection, since each file is in the order of
its writer's clock, and what lies before it is looked at as :mod:`doctor.glance` does: memory stays bounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from pathlib import Path

import msgspec

from doctor.event_shapes import sound_events
from doctor.glance import WHOLE_BYTES, RareIndex, events_until, glance_until
from runner.events import LONGEST_LINE, RunEvent, read_events
from runner.rundir import RunDir
from runner.state import RunState

SEARCH_FOR_S = 1.0
"""So long a long file is searched a jump for evaluations, checkpoints and notes; what one jump found, the next has."""
LAST_LINES_BYTES = 256 << 10
_DECODER = msgspec.json.Decoder(RunEvent)


class Replay:
    """One run's past. Its methods read the disk: called in the background, one call at a time."""

    def __init__(self, run: RunDir, whole_bytes: int = WHOLE_BYTES) -> None:
        self.run = run
        self._whole_bytes = whole_bytes
        self._rare: dict[Path, RareIndex] = {}
        self._state = RunState()
        self._ends: dict[Path, int] = {}
        """Where in each file :attr:`_state` ends: going forward goes on from there."""

    def span(self) -> tuple[float, float] | None:
        """Return the times of the first and the last event (seconds since the epoch); None: there is none yet."""
        files = self._files()
        firsts = [event.t for path in files if (event := _first(path)) is not None]
        lasts = [t for path in files if (t := _last_t(path)) is not None]
        return (min(firsts), max(lasts)) if firsts and lasts else None

    def state_at(self, at: float) -> RunState:
        """Return what had been written by ``at`` (seconds since the epoch), folded. Of a long run it is approximate.

        The state belongs to this object and changes with the next call.
        """
        ends = {path: cut(path, at) for path in self._files()}
        if sum(ends.values()) > self._whole_bytes:
            self._state, self._ends = RunState(), {}
            return glance_until(ends, self._find_rare)
        if any(ends.get(path, 0) < end for path, end in self._ends.items()):
            self._state, self._ends = RunState(), {}
        parts = [events_until(path, end, self._ends.get(path, 0)) for path, end in ends.items()]
        for event in sound_events(heapq.merge(*parts, key=lambda event: event.t)):
            self._state.add(event)
        self._ends = ends
        return self._state

    def _files(self) -> list[Path]:
        return sorted(self.run.events.glob("*.jsonl"))

    def _find_rare(self, path: Path, start: int, end: int) -> Iterable[int]:
        index = self._rare.setdefault(path, RareIndex(path))
        return index.between(start, end, SEARCH_FOR_S)


def cut(path: Path, at: float) -> int:
    """Return the byte behind the last line that was written by ``at``; a torn last line does not count."""
    with open(path, "rb") as file:
        low, high = 0, file.seek(0, 2)
        while low < high:
            middle = (low + high) // 2
            file.seek(middle)
            if middle > low:
                file.seek(middle - 1)
                file.readline(LONGEST_LINE)  # the rest of a line that began before the middle
            begin, t, end = _next_event(file.tell(), path, high)
            if t is None or begin >= high:
                high = middle  # nothing whole begins between the middle and the upper end
            elif t <= at:
                low = end
            else:
                high = middle
        return low


def _next_event(start: int, path: Path, limit: int) -> tuple[int, float | None, int]:
    """Return where the first event at or behind ``start`` begins, its time, and where its line ends."""
    for event, offset in read_events(path, start):
        return start, event.t, offset
    return limit, None, limit


def _first(path: Path) -> RunEvent | None:
    return next((event for event, _ in read_events(path)), None)


def _last_t(path: Path) -> float | None:
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - LAST_LINES_BYTES))
        lines = file.read().splitlines(keepends=True)
    for line in reversed(lines):
        try:
            return _DECODER.decode(line).t
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return None
