"""Where files lie that a command's script writes: below the folder it runs in and the folders that it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from doctor.bounded_walk import PASSED_OVER, Bounds, Entry, walk

_BOUNDS = Bounds(depth=5, passed_over=PASSED_OVER | {"wandb", "events"})


def files_below(folder: Path, argv: Sequence[str], is_wanted: Callable[[Entry], bool]) -> Iterator[Path]:
    """Yield what is wanted of a command's own, nearest first: a bounded look.

    Args:
        folder: where the command runs.
        argv: its words; a word that is a folder, or an option's value that is one, is looked into too.
        is_wanted: told of each entry; into a wanted folder the look does not go.
    """
    for root in roots_of(folder, argv):
        yield from walk(root, is_wanted, _BOUNDS)


def roots_of(folder: Path, argv: Sequence[str]) -> list[Path]:
    """Return the folders to look into; one inside another is looked into once."""
    # --output_dir /data/out   |   --output_dir=/data/out   |   trainer.default_root_dir=/data/out
    words = [word.rpartition("=")[2] for word in argv[1:]]
    named = [folder / word for word in words if word not in ("", ".") and os.path.isdir(folder / word)]  # noqa: PTH112 - False for a word of any length
    roots = [folder, *named]
    return [one for one in dict.fromkeys(roots) if not any(other in one.parents for other in roots)]
