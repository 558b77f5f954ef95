"""How a long events file begins and ends, without reading what lies between: enough for a row in a list of runs."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from pathlib import Path

from runner.events import RunEvent, read_events

WHOLE_BYTES = 4 << 20
"""A file up to this size is read whole."""
END_BYTES = 256 << 10
SEARCHED_BYTES = 256 << 20
"""So far back from its end the newest evaluation is looked for."""


def first_and_last(path: Path) -> Iterator[RunEvent]:
    """Yield a file's events; of a large file its first ones, its newest evaluation, and its last ones."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size <= WHOLE_BYTES:
        yield from (event for event, _ in read_events(path))
        return
    for event, offset in read_events(path):
        if offset > END_BYTES:
            break
        yield event
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        tail = content.find(b"\n", len(content) - END_BYTES) + 1
        found = content.rfind(b'"kind":"evaluation"', max(0, tail - SEARCHED_BYTES), tail)
        evaluation = content.rfind(b"\n", 0, found) + 1 if found >= 0 else None
    if evaluation is not None:
        yield from (event for event, _ in itertools.islice(read_events(path, evaluation), 1))
    yield from (event for event, _ in read_events(path, tail))
