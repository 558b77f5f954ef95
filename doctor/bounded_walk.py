"""Looking through somebody else's folders for files: so deep, so many, so long, and never where nothing of theirs lies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

Entry = os.DirEntry[str]
PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__"})


class Bounds(NamedTuple):
    """How far a look goes."""

    depth: int
    """Folders below the first one."""
    entries: int = 20_000
    """More are not looked at: a script may run beside a data set of a million files."""
    until: float = float("inf")
    """On :func:`time.monotonic`'s clock."""
    passed_over: frozenset[str] = PASSED_OVER
    """Names of folders that are not gone into."""


def walk(root: Path, is_wanted: Callable[[Entry], bool], bounds: Bounds) -> Iterator[Path]:
    """Yield what is wanted, nearest first; into a wanted folder, a hidden one and a link it does not go."""
    left, waiting = bounds.entries, [(root, 0)]
    while waiting and left > 0 and time.monotonic() < bounds.until:
        folder, depth = waiting.pop(0)
        for entry in entries_of(folder):
            left -= 1
            if is_wanted(entry):
                yield Path(entry.path)
            elif depth < bounds.depth and _is_open(entry, bounds):
                waiting.append((Path(entry.path), depth + 1))


def _is_open(entry: Entry, bounds: Bounds) -> bool:
    is_passed_over = entry.name.startswith(".") or entry.name in bounds.passed_over
    return not is_passed_over and entry.is_dir(follow_symlinks=False)


def entries_of(folder: Path) -> list[Entry]:
    """Return what lies in a folder; nothing where it is gone, or not ours to see."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
