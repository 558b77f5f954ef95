"""A copy of an environment's packages that costs no room: the same files under second names (hard links).

Installers replace files, they do not write into them, so the second name keeps the old bytes. Each kept file's size and
time is written down, and looked at again before it is put back.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from doctor.acts.remove import ASIDE
from doctor.acts.tree import Item, remove, walk
from doctor.probes.mountinfo import parse_mountinfo


class Saved(msgspec.Struct, frozen=True):
    """What was there in one folder."""

    folder: str
    kept: str
    items: list[Item]


def can_link(folder: Path) -> bool:
    """Whether a hard link in ``folder`` costs nothing: not on an image's layers, where it would copy each file."""
    try:
        lines = parse_mountinfo(Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape"))
    except OSError:
        return False
    real = os.path.realpath(folder)
    above = [line for line in lines if real == line.path or real.startswith(line.path.rstrip("/") + "/")]
    if not above or max(above, key=lambda line: len(line.path)).fstype in ("overlay", "fuse-overlayfs"):
        return False
    probe, twin = folder / f".doctor-{os.getpid()}", folder / f".doctor-{os.getpid()}.twin"
    try:
        probe.touch()
        os.link(probe, twin)
    except OSError:
        return False
    finally:
        for path in (probe, twin):
            path.unlink(missing_ok=True)
    return True


def save(folders: tuple[Path, ...], prefix: Path, name: str) -> list[Saved]:
    """Give every file below ``folders`` a second name below ``prefix``. Raises OSError."""
    base = prefix / ASIDE / name
    saved = []
    for number, folder in enumerate(folders):
        if folder.is_dir():
            kept = base / str(number)
            items = list(_walk(folder))
            _link_all(folder, kept, items)
            saved.append(Saved(str(folder), str(kept), items))
    return saved


def _walk(folder: Path) -> Iterator[Item]:
    """What was put aside earlier is no part of the environment."""
    yield from (item for item in walk(folder) if item.path.split("/")[0] != ASIDE)


def _link_all(folder: Path, kept: Path, items: list[Item]) -> None:
    kept.mkdir(parents=True)
    for item in items:
        there = kept / item.path
        if item.kind == "folder":
            there.mkdir(exist_ok=True)
        elif item.kind == "link":
            os.symlink(item.target, there)  # noqa: PTH211
        else:
            os.link(folder / item.path, there)


def damaged(saved: Saved) -> list[str]:
    """Return the files whose kept bytes were written over, or are gone: they could not be put back."""
    kept = Path(saved.kept)
    return [
        item.path for item in saved.items if item.kind == "file" and not _same_bytes(item, kept / item.path)
    ]


def restore(saved: Saved) -> None:
    """Put a folder back as it was. May be cut off and begun again. Raises OSError."""
    folder, kept = Path(saved.folder), Path(saved.kept)
    wanted = {item.path: item for item in saved.items}
    for item in reversed(list(_walk(folder))):  # what came since goes, from the inside out
        if item.path not in wanted or item.kind != wanted[item.path].kind:
            remove(folder / item.path)
    for item in saved.items:
        here, there = folder / item.path, kept / item.path
        if item.kind == "folder":
            here.mkdir(exist_ok=True)
        elif item.kind == "link":
            if not here.is_symlink() or os.readlink(here) != item.target:  # noqa: PTH115
                here.unlink(missing_ok=True)
                os.symlink(item.target, here)  # noqa: PTH211
        elif not here.exists() or not here.samefile(there):
            here.unlink(missing_ok=True)
            os.link(there, here)
    for item in saved.items:
        if item.kind == "folder":
            os.chmod(folder / item.path, item.mode)  # noqa: PTH101
        elif item.kind == "file" and item.size == 0:  # the one kind that may have been opened anew
            os.utime(folder / item.path, ns=(item.mtime_ns, item.mtime_ns))


def _same_bytes(item: Item, kept: Path) -> bool:
    try:
        info = kept.lstat()
    except FileNotFoundError:
        return False
    if info.st_size == item.size == 0:
        return True  # pip opens an empty REQUESTED anew: there are no bytes that could differ
    return (info.st_size, info.st_mtime_ns) == (item.size, item.mtime_ns)


def forget(prefix: Path, name: str) -> None:
    """Take the second names away: the bytes go where nothing else holds them."""
    shutil.rmtree(prefix / ASIDE / name, ignore_errors=True)
    aside = prefix / ASIDE
    if aside.is_dir() and not any(aside.iterdir()):
        aside.rmdir()
