"""A folder as a list of what is in it, with hashes; copied, compared, and put on disk. Links stay links."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from doctor.acts.recode import file_sha256


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing below a folder, by its path relative to it (``.`` is the folder or file itself)."""

    path: str
    kind: str
    """file, link, folder."""
    size: int = 0
    mode: int = 0
    mtime_ns: int = 0
    target: str = ""
    sha256: str = ""


class Odd(OSError):  # noqa: N818 - it is what it says
    """Something that cannot be copied: a socket, a device."""


def walk(root: Path) -> Iterator[Item]:
    """Yield what is below ``root``, folders before what is in them, without hashes. Raises OSError."""
    yield _item(root, ".")
    if not root.is_dir() or root.is_symlink():
        return
    for folder, folders, files in os.walk(root, onerror=_raise):
        folders.sort()
        for name in (*folders, *sorted(files)):
            path = os.path.join(folder, name)  # noqa: PTH118
            yield _item(Path(path), os.path.relpath(path, root))


def _raise(error: OSError) -> None:
    raise error


def _item(path: Path, relative: str) -> Item:
    info = path.lstat()
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISLNK(info.st_mode):
        return Item(relative, "link", target=os.readlink(path))  # noqa: PTH115
    if stat.S_ISDIR(info.st_mode):
        return Item(relative, "folder", mode=mode)
    if stat.S_ISREG(info.st_mode):
        return Item(relative, "file", size=info.st_size, mode=mode, mtime_ns=info.st_mtime_ns)
    raise Odd(f"{path} is neither file nor folder")


def copy(source: Path, target: Path, tell: Callable[[int], None] | None = None) -> list[Item]:
    """Copy ``source`` to ``target`` and return what was copied, with the hashes read back from the copy.

    A copy that was cut off is gone on with: a file of the same size and time there counts as copied, and is hashed.
    """
    items, done = [], 0
    for item in walk(source):
        there = target if item.path == "." else target / item.path
        here = source if item.path == "." else source / item.path
        if item.kind == "folder":
            there.mkdir(parents=True, exist_ok=True)
        elif item.kind == "link":
            if not there.is_symlink():
                os.symlink(item.target, there)  # noqa: PTH211
        elif not _is_copied(item, there):
            _copy_file(here, there, item)
        done += item.size
        if tell and item.kind == "file":
            tell(done)
        items.append(item)
    for item in reversed(items):  # a folder's own mode last: it may forbid writing into it
        if item.kind == "folder":
            os.chmod(target / item.path, item.mode)  # noqa: PTH101
    return items


def _is_copied(item: Item, there: Path) -> bool:
    try:
        info = there.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(info.st_mode) and (info.st_size, info.st_mtime_ns) == (item.size, item.mtime_ns)


def _copy_file(here: Path, there: Path, item: Item) -> None:
    shutil.copyfile(here, there)
    with open(there, "rb+") as file:
        os.fchmod(file.fileno(), item.mode)
        os.fsync(file.fileno())
    os.utime(there, ns=(item.mtime_ns, item.mtime_ns))


def differences(source: Path, items: list[Item], target: Path) -> str:
    """Return the first path that is not the same in both, by size, kind and hash; empty: all are."""
    if list(walk(source)) != items:
        return str(source)
    for item, copied in zip(items, walk(target), strict=False):
        if (item.path, item.kind, item.size, item.target) != (
            copied.path,
            copied.kind,
            copied.size,
            copied.target,
        ):
            return item.path
        if item.kind == "file":
            here = source if item.path == "." else source / item.path
            there = target if item.path == "." else target / item.path
            if file_sha256(here) != file_sha256(there):
                return item.path
    return "" if sum(1 for _ in walk(target)) == len(items) else str(target)


def missing_folders(path: Path) -> str:
    """Return the folders above ``path`` that are not there yet, deepest first, a line each."""
    return "\n".join(str(folder) for folder in path.parents if not folder.exists())


def remove_empty(folders: str) -> None:
    """Take away the folders of :func:`missing_folders` again, up to the first that holds something."""
    for folder in filter(None, folders.split("\n")):
        try:
            os.rmdir(folder)  # noqa: PTH106 - only an empty one goes
        except FileNotFoundError:
            continue
        except OSError:
            return


def total_bytes(items: list[Item]) -> int:
    return sum(item.size for item in items)


def remove(path: Path) -> None:
    """Delete a file, link or folder; nothing there is fine. Raises OSError."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
