"""A data set put on the fastest disk with room: copied by several hands, gone on with after a cut, checked by hash.

What was copied is written down in ``TARGET/.rundoctor-stage.json``: size, time and hash of each file. A second call copies
only what changed since, and nothing where nothing did.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from doctor.model import Record, t
from doctor.stage_copy import CHUNK_BYTES, Copied, StageError, copy_file
from doctor.state_dir import write_whole

HANDS = 8
"""Files copied side by side: a network disk answers many readers faster than one."""
MANIFEST = ".rundoctor-stage.json"
_SAMPLE_BYTES = 256 << 20
SPARE_SHARE = 1.05
"""Room asked for, of what is copied."""


class Staged(Record, frozen=True):
    """What a call did. Speeds are bytes a second, read past the page cache where the kernel lets us; None: not measured."""

    target: str
    files: int
    copied: int
    total_bytes: int
    speed_before: float | None = None
    speed_after: float | None = None


# ---------------------------------------------------------------------------------------- copying
def files_of(source: Path) -> dict[str, os.stat_result]:
    """Return the regular files of a data set by their path relative to it (``.`` of a single file).

    Raises:
        StageError: it is not there, or holds something that is no file.
    """
    if source.is_file():
        return {".": source.stat()}
    found = {}
    for folder, folders, names in os.walk(source, followlinks=True):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            info = path.stat()
            if not stat.S_ISREG(info.st_mode):
                raise StageError(t("{path} is no regular file, and cannot be staged", path=str(path)))
            found[os.path.relpath(path, source)] = info
    if not found:
        raise StageError(t("there is no file in {path}", path=str(source)))
    return found


def stage(source: Path, target: Path, tell: Callable[[int, int], None]) -> Staged:
    """Copy ``source`` into the folder ``target``; ``tell`` is given bytes done and bytes of all.

    Raises:
        StageError: no room, or a copy that differs from what was read.
        OSError: a disk refused.
    """
    files = files_of(source)
    known = read_manifest(target)
    total = sum(info.st_size for info in files.values())
    todo = [name for name, info in files.items() if not _is_current(known.get(name), info, _place(target, name, source))]  # fmt: skip
    needed = sum(files[name].st_size for name in todo)
    target.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(target).free < needed * SPARE_SHARE:
        raise StageError(t("{folder} has {free} MB free, {needed} MB are needed: nothing was done", folder=str(target), free=shutil.disk_usage(target).free >> 20, needed=needed >> 20))  # fmt: skip
    before = read_speed(source, todo) if todo else None
    _refuse_strangers(target, source, files, [name for name in todo if name not in known])
    written = time.monotonic()
    try:
        for name, copied in _copy_all(source, target, files, todo, total - needed, total, tell):
            known[name] = copied
            if time.monotonic() - written > 1:
                write_manifest(target, known)
                written = time.monotonic()
    finally:
        write_manifest(target, known)
    _forget_others(target, known, files)
    after = read_speed(target, todo, source) if todo else None
    return Staged(target=str(target), files=len(files), copied=len(todo), total_bytes=total, speed_before=before, speed_after=after)  # fmt: skip


def _refuse_strangers(target: Path, source: Path, files: dict[str, os.stat_result], names: list[str]) -> None:
    """A file that no call of ours put there is not written over, unless it looks like what would be copied."""
    for name in names:
        there = _place(target, name, source)
        if there.exists():
            found, info = there.stat(), files[name]
            if (found.st_size, found.st_mtime_ns) != (info.st_size, info.st_mtime_ns):
                raise StageError(
                    t("there is another file at {path}: name a folder of its own with --to", path=str(there))
                )


def _place(target: Path, name: str, source: Path) -> Path:
    return target / (source.name if name == "." else name)


def _is_current(known: Copied | None, info: os.stat_result, there: Path) -> bool:
    if known is None or (known.size, known.mtime_ns) != (info.st_size, info.st_mtime_ns):
        return False
    try:
        found = there.stat()
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == (known.size, known.mtime_ns)


def _copy_all(
    source: Path, target: Path, files: dict[str, os.stat_result], todo: list[str], done: int, total: int,
    tell: Callable[[int, int], None],
) -> Iterator[tuple[str, Copied]]:  # fmt: skip
    """Copy side by side and yield each file as it is through; the first trouble stops the rest."""
    lock, counted, stop = threading.Lock(), [done], threading.Event()

    def add(size: int) -> None:
        with lock:
            counted[0] += size
            tell(counted[0], total)

    def one(name: str) -> tuple[str, Copied]:
        here = source if name == "." else source / name
        return name, copy_file(here, _place(target, name, source), files[name], add, stop)

    with ThreadPoolExecutor(HANDS) as pool:
        try:
            yield from pool.map(one, todo)
        finally:
            stop.set()


def read_speed(root: Path, names: list[str], source: Path | None = None) -> float | None:
    """Return bytes a second of reading the first files, up to 256 MB; None: too little to tell."""
    done, begun = 0, time.perf_counter()
    for name in names:
        path = _place(root, name, source) if source else (root if name == "." else root / name)
        with open(path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while done < _SAMPLE_BYTES and (chunk := file.read(CHUNK_BYTES)):
                done += len(chunk)
        if done >= _SAMPLE_BYTES:
            break
    return done / max(1e-9, time.perf_counter() - begun) if done >= 1 << 20 else None


# ---------------------------------------------------------------------------------------- what was copied
def read_manifest(target: Path) -> dict[str, Copied]:
    """Return what an earlier call copied; empty where it cannot be read: all is copied anew then."""
    try:
        return msgspec.json.decode((target / MANIFEST).read_bytes(), type=dict[str, Copied])
    except (OSError, msgspec.MsgspecError):
        return {}


def write_manifest(target: Path, known: dict[str, Copied]) -> None:
    write_whole(target / MANIFEST, msgspec.json.encode(known), 0o644)


def _forget_others(target: Path, known: dict[str, Copied], files: dict[str, os.stat_result]) -> None:
    """Take away the copies of files that the data set no longer has: only those that an earlier call made."""
    for name in [name for name in known if name not in files]:
        (target / name).unlink(missing_ok=True)
        del known[name]
    write_manifest(target, known)
