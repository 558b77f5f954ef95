"""How a long events file begins and ends, without reading what lies between: enough for a row in a list of runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from runner.events import LONGEST_LINE, RunEvent, read_events

WHOLE_BYTES = 4 << 20
"""A file up to this size is read whole."""
END_BYTES = 256 << 10
BLOCK_BYTES = 1 << 20
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
    with open(path, "rb") as file:
        file.seek(size - END_BYTES)
        tail = size - END_BYTES + len(file.readline(LONGEST_LINE))
        evaluation = _line_of_last(file, b'"kind":"evaluation"', tail)
    if evaluation is not None:
        yield from (event for event, _ in itertools.islice(read_events(path, evaluation), 1))
    yield from (event for event, _ in read_events(path, tail))


def _line_of_last(file: BinaryIO, words: bytes, end: int) -> int | None:
    """Return where the last line before ``end`` begins that holds ``words``; None: there is none in :data:`SEARCHED_BYTES`."""
    after = b""
    for begin in range(end - BLOCK_BYTES, max(-BLOCK_BYTES, end - SEARCHED_BYTES), -BLOCK_BYTES):
        file.seek(max(0, begin))
        block = file.read(min(BLOCK_BYTES, BLOCK_BYTES + begin)) + after
        found = block.rfind(words)
        line = block.rfind(b"\n", 0, found) + 1 if found >= 0 else 0
        if found >= 0 and (line or begin <= 0):
            return max(0, begin) + line
        after = block[: block.find(b"\n") + 1][:LONGEST_LINE]
    return None
