"""Checkpoints that a command's own script writes: which were written in this run, and which of them is the newest whole one.

Trainer's ``checkpoint-N`` folders, accelerate's ``step_N`` and ``epoch_N``, Lightning's ``*.ckpt``, or the user's own
pattern. Nothing is loaded: whether a file is whole shows in its header, its end, or its size.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.bounded_walk import entries_of
from doctor.own_files import files_below
from doctor.whole_files import folder_trouble, trouble_in
from runner.text import Text

# checkpoint-500 | checkpoint_2 | step_500 | epoch_1 | global_step500
_FOLDER = re.compile(r"^(?:checkpoint|step|epoch|global_step)[-_]?\d+$")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")


@dataclass(frozen=True)
class OwnCheckpoint:
    """A checkpoint of the script's own."""

    path: Path
    modified_ns: int
    """Of its newest file."""

    @property
    def step(self) -> int | None:
        """What its name counts: the last number in it; None: there is none (``last.ckpt``)."""
        # checkpoint-500 | epoch=3-step=120.ckpt | model_final.pt
        numbers = re.findall(r"\d+", self.path.name)
        return int(numbers[-1]) if numbers else None

    @property
    def trouble(self) -> Text | None:
        """Why it is not whole; None: nothing speaks against it."""
        return folder_trouble(self.path) if self.path.is_dir() else trouble_in(self.path)


Seen = Mapping[Path, int]
"""Checkpoints of before the run, with their times: none of its own."""


def checkpoints_at(folder: Path, argv: Sequence[str], pattern: str = "") -> list[OwnCheckpoint]:
    """Return the checkpoints of a command's folder and of the folders that it names, newest first.

    Args:
        folder: where the command runs.
        argv: its words; a word that is a folder, or an option's value that is one, is looked into too.
        pattern: where given, a glob that is looked for instead (relative to ``folder``, ``**`` for any depth).
    """
    if pattern:
        paths: Iterable[Path] = (Path(name) for name in glob.iglob(str(folder / pattern), recursive=True))  # noqa: PTH207 - also an absolute one
    else:
        paths = files_below(folder, argv, _is_checkpoint)
    found = [OwnCheckpoint(path, time_of(path)) for path in dict.fromkeys(path.absolute() for path in paths)]
    return sorted(found, key=lambda one: (-one.modified_ns, -(one.step or 0)))


def written_since(found: Iterable[OwnCheckpoint], before: Seen) -> list[OwnCheckpoint]:
    """Return those that are new or changed since ``before``: another run's checkpoint is none to go on from."""
    return [one for one in found if before.get(one.path) != one.modified_ns]


def newest_whole(
    found: Iterable[OwnCheckpoint],
) -> tuple[OwnCheckpoint | None, list[tuple[OwnCheckpoint, Text]]]:
    """Return the first that is whole, and those before it that are not, each with what is wrong."""
    damaged: list[tuple[OwnCheckpoint, Text]] = []
    for one in found:
        trouble = one.trouble
        if trouble is None:
            return one, damaged
        damaged.append((one, trouble))
    return None, damaged


def _is_checkpoint(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return bool(_FOLDER.match(entry.name)) and _holds_weights(Path(entry.path))
    return entry.name.endswith(".ckpt")


def _holds_weights(folder: Path) -> bool:
    return any(
        entry.name.endswith(_WEIGHTS) or (entry.is_dir(follow_symlinks=False) and _holds_weights(Path(entry.path)))
        for entry in entries_of(folder)
    )  # fmt: skip


def time_of(path: Path) -> int:
    """Return when a checkpoint was last written, in ns: of a folder its newest file."""
    own = [_modified(path)]
    return (
        max([*own, *(time_of(Path(entry.path)) for entry in entries_of(path))]) if path.is_dir() else own[0]
    )


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
