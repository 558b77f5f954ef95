"""One file copied, gone on with after a cut, and checked by what lies on the disk afterwards."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from doctor.model import Record, Text, t

CHUNK_BYTES = 4 << 20


class StageError(Exception):
    """The data cannot be put anywhere. ``text`` says why; a copy that was begun stays and is gone on with."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class Copied(Record, frozen=True):
    """One file as it was copied."""

    size: int
    mtime_ns: int
    blake2b: str


def copy_file(
    here: Path, there: Path, info: os.stat_result, add: Callable[[int], None], stop: threading.Event
) -> Copied:
    """Copy one file; a part that a cut left behind is gone on with when what it holds is what the file begins with."""
    part = there.with_name(f".{there.name}.part")
    there.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b()
    with open(here, "rb") as source, open(part, "ab+") as target:
        add(_skip_what_is_there(source, target, digest))
        while chunk := source.read(CHUNK_BYTES):
            if stop.is_set():
                raise StageError(t("interrupted"))
            target.write(chunk)
            digest.update(chunk)
            add(len(chunk))
        target.flush()
        os.fsync(target.fileno())
        if os.fstat(target.fileno()).st_size != info.st_size or os.fstat(source.fileno()).st_mtime_ns != info.st_mtime_ns:  # fmt: skip
            part.unlink()
            raise StageError(t("{file} was changed while it was copied: try again", file=str(here)))
    if file_hash(part) != digest.hexdigest():
        part.unlink()
        raise StageError(t("the copy of {file} differs from what was read: that disk cannot be trusted", file=str(here)))  # fmt: skip
    os.utime(part, ns=(info.st_mtime_ns, info.st_mtime_ns))
    os.replace(part, there)  # noqa: PTH105
    return Copied(size=info.st_size, mtime_ns=info.st_mtime_ns, blake2b=digest.hexdigest())


def _skip_what_is_there(source: BinaryIO, target: BinaryIO, digest: hashlib.blake2b) -> int:
    """Leave both files where the part's content stops being the file's; return how many bytes are kept."""
    kept = 0
    target.seek(0)
    while chunk := target.read(CHUNK_BYTES):
        if source.read(len(chunk)) != chunk:
            break
        digest.update(chunk)
        kept += len(chunk)
    source.seek(kept)
    target.truncate(kept)
    target.seek(kept)
    return kept


def file_hash(path: Path) -> str:
    """Return the hash of what lies on the disk, past the page cache where the kernel lets us."""
    digest = hashlib.blake2b()
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
