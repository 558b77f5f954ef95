"""Files that a command's script writes, found below the folder it runs in and the folders that it names: a bounded look."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__", "wandb", "events"})
DEPTH = 5
ENTRIES = 20_000
"""More are not looked at: a command may run beside a data set of a million files."""


def roots_of(folder: Path, argv: Sequence[str]) -> list[Path]:
    """Return the folders to look into; one inside another is looked into once."""
    # --output_dir /data/out   |   --output_dir=/data/out   |   trainer.default_root_dir=/data/out
    words = [word.rpartition("=")[2] for word in argv[1:]]
    named = [folder / word for word in words if word not in ("", ".") and os.path.isdir(folder / word)]  # noqa: PTH112 - False for a word of any length
    roots = [folder, *named]
    return [one for one in dict.fromkeys(roots) if not any(other in one.parents for other in roots)]


def walk(root: Path, is_wanted: Callable[[os.DirEntry[str]], bool]) -> Iterator[Path]:
    """Yield what is wanted, nearest first; into a wanted folder, a hidden one and a link it does not go."""
    left, waiting = ENTRIES, [(root, 0)]
    while waiting and left > 0:
        folder, depth = waiting.pop(0)
        for entry in entries_of(folder):
            left -= 1
            if is_wanted(entry):
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False) and depth < DEPTH and _is_open(entry.name):
                waiting.append((Path(entry.path), depth + 1))


def _is_open(name: str) -> bool:
    return not name.startswith(".") and name not in _PASSED_OVER


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # gone meanwhile, or not ours to see: nothing of the script's lies there
        return []
