"""A long run at a glance: how its events begin and end, what happened rarely, and its curves thinned, without decoding it all.

Nothing is written beside the run. What is read here is marked approximate; whoever stays reads it whole in the background.
"""

from __future__ import annotations

import bisect
import heapq
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from doctor.event_shapes import sound_events
from runner.events import LONGEST_LINE, RunEvent, read_events
from runner.rundir import RunDir
from runner.state import RunState

WHOLE_BYTES = 8 << 20
"""Events up to this size (some 25,000 steps) are read whole: that takes a fraction of a second."""
HEAD_BYTES = 128 << 10
TAIL_BYTES = 1 << 20
POINTS = 1500
"""Lines taken from the middle of a file, evenly by bytes."""
BLOCK_BYTES = 2 << 20
SEARCH_FOR_S = 1.0
"""So long the middles are searched for what happened rarely; on a slow disk the rest is left to the whole reading."""

_RARE = re.compile(
    rb'"kind":"(?:evaluation|checkpoint|run-started|run-finished|on-finish|note|xid|sample-xids)"'
)
_DECODER = msgspec.json.Decoder(RunEvent)


FindRare = Callable[[Path, int, int], Iterable[int]]
"""(file, start, end) -> where between the two lines of rare kinds begin."""


class Seen(NamedTuple):
    t: float
    is_from_middle: bool
    """Not all that stands between this event and the one before was read."""
    event: RunEvent


def is_long(run: RunDir) -> bool:
    """Return whether reading all events of a run would keep a person waiting."""
    return sum(path.stat().st_size for path in run.events.glob("*.jsonl")) > WHOLE_BYTES


def glance(run: RunDir) -> RunState:
    """Return the state of a long run, approximate: see :attr:`runner.state.RunState.is_approximate`."""
    sizes = {path: path.stat().st_size for path in sorted(run.events.glob("*.jsonl"))}
    total = max(1, sum(sizes.values()))
    return glance_until(sizes, lambda path, start, end: _rare(path, start, end, SEARCH_FOR_S * end / total))


def glance_until(ends: Mapping[Path, int], rare: FindRare) -> RunState:
    """Return the state after the first ``ends[path]`` bytes of each file, approximate; ``ends`` stand behind lines."""
    state = RunState()
    state.is_approximate = True
    files = [_look_at(path, end, rare) for path, end in ends.items()]
    for seen in heapq.merge(*files, key=lambda seen: seen.t):
        for event in sound_events((seen.event,)):
            if seen.is_from_middle:
                state.add_thinned(event)
            else:
                state.add(event)
    return state


def _look_at(path: Path, end: int, rare: FindRare) -> Iterator[Seen]:
    if end <= HEAD_BYTES + 2 * TAIL_BYTES:
        yield from (Seen(event.t, False, event) for event in events_until(path, end))
        return
    at = 0
    for event, offset in read_events(path):
        yield Seen(event.t, False, event)
        at = offset
        if offset > HEAD_BYTES:
            break
    tail = _line_after(path, end - TAIL_BYTES)
    offsets = {*_evenly(path, at, tail), *rare(path, at, tail)}
    with open(path, "rb") as file:
        for offset in sorted(offsets):
            file.seek(offset)
            if (found := _decoded(file.readline(LONGEST_LINE))) is not None:
                yield Seen(found.t, True, found)
    yield from (Seen(event.t, False, event) for event in events_until(path, end, tail))


def events_until(path: Path, end: int, start: int = 0) -> Iterator[RunEvent]:
    """Yield the events between two line beginnings."""
    for event, offset in read_events(path, start):
        if offset > end:
            return
        yield event


def _decoded(line: bytes) -> RunEvent | None:
    try:
        return _DECODER.decode(line)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
    ):  # torn by a kill and then ended, or foreign: as read_events does
        return None


class RareIndex:
    """Where in one file the lines of rare kinds begin, searched as far as was asked for, and remembered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[int] = []
        self._searched = 0

    def between(self, start: int, end: int, search_for_s: float) -> list[int]:
        """Return those between two line beginnings; of what was not searched before, as far as the time reaches."""
        if self._searched < end:
            search = _Search(self._path, self._searched, end, search_for_s)
            self._found += search
            self._searched = search.at
        return self._found[bisect.bisect_left(self._found, start) : bisect.bisect_left(self._found, end)]


def _line_after(path: Path, offset: int) -> int:
    """Return where the first line behind byte ``offset`` begins."""
    with open(path, "rb") as file:
        file.seek(offset)
        return offset + len(file.readline(LONGEST_LINE))


def _evenly(path: Path, start: int, end: int) -> Iterator[int]:
    with open(path, "rb") as file:
        for index in range(POINTS):
            offset = start + (end - start) * index // POINTS
            file.seek(offset)
            offset += len(file.readline(LONGEST_LINE))
            if offset < end:
                yield offset


def _rare(path: Path, start: int, end: int, search_for_s: float) -> Iterator[int]:
    """Yield where lines of rare kinds begin between two line beginnings, as far as time allows."""
    yield from _Search(path, start, end, search_for_s)


class _Search:
    """One search; ``at`` is the line beginning that it came to."""

    def __init__(self, path: Path, start: int, end: int, search_for_s: float) -> None:
        self._path, self._end, self.at = path, end, start
        self._until = time.monotonic() + search_for_s

    def __iter__(self) -> Iterator[int]:
        with open(self._path, "rb") as file:
            while self.at < self._end and time.monotonic() < self._until:
                file.seek(self.at)
                block = file.read(min(BLOCK_BYTES, self._end - self.at))
                whole = block.rfind(b"\n") + 1
                if not whole:
                    return
                for match in _RARE.finditer(block, 0, whole):
                    yield self.at + block.rfind(b"\n", 0, match.start()) + 1
                self.at += whole
