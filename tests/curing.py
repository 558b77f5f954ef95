"""Changing a small world for real: a home, two disks, a journal. What tests of the cure share."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from doctor.apply import Applied, apply_fix, undo
from doctor.journal import locked
from doctor.model import Fix, Step, Text, t

Picture = dict[str, tuple[str, int, bytes, int]]


def picture(root: Path, without: tuple[str, ...] = ("state",)) -> Picture:
    """Return every path below ``root`` with its kind, mode, bytes (or link target) and, of files, its time."""
    found: Picture = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/")[0] in without:
            continue
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            found[name] = ("link", 0, os.readlink(path).encode(), 0)  # noqa: PTH115
        elif stat.S_ISDIR(info.st_mode):
            found[name] = ("folder", stat.S_IMODE(info.st_mode), b"", 0)
        else:
            found[name] = ("file", stat.S_IMODE(info.st_mode), path.read_bytes(), info.st_mtime_ns)
    return found


def a_fix(*steps: Step) -> Fix:
    return Fix(id="disk-nearly-full", title=t("a cure"), steps=steps)


def quiet(number: int, step: Step, what: str, why: Text | None) -> None:
    """Tell nobody."""


def carry_out(state: Path, *steps: Step, confirm: Callable[[int, Step], bool] | None = None) -> Applied:
    with locked(state) as journal:
        return apply_fix(journal, a_fix(*steps), confirm or (lambda number, step: True), quiet)


def take_back(state: Path, name: str) -> Text | None:
    with locked(state) as journal:
        return undo(journal, name, quiet)
