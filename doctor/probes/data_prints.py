"""Fingerprints of data: small files by every byte, large ones by size and evenly spaced blocks, and said which.

A folder's fingerprint is a digest over the sorted (path, size, content) of its files. Bounded in files and in bytes read,
so that a corpus of a terabyte costs a second; what was left out is said.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from doctor.model import DataFingerprint, t
from doctor.probes.bounded import open_regular
from doctor.probes.gaps import reason_of
from runner.strings import printable

WHOLE_LIMIT_BYTES = 32 << 20
"""A file up to this size is read whole, while the budget lasts."""
BUDGET_BYTES = 256 << 20
BLOCK_BYTES, BLOCKS = 1 << 20, 16
FILES_LIMIT = 20_000


class _Budget(msgspec.Struct):
    left_bytes: int = BUDGET_BYTES
    sampled: bool = False


def fingerprint(path: Path) -> DataFingerprint:
    """Return the fingerprint of a file or folder; what could not be read says why."""
    shown = printable(str(path))
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            return _folder(path, shown)
        budget = _Budget()
        digest = _file_digest(path, status.st_size, budget)
    except OSError as error:
        return DataFingerprint(
            path=shown, why=t("{path} could not be read: {error}", path=shown, error=reason_of(error))
        )
    return DataFingerprint(
        path=shown, size_bytes=status.st_size, files=1, modified_at=_moment(status.st_mtime),
        sha256=f"sha256:{digest}", how="sampled" if budget.sampled else "whole",
    )  # fmt: skip


def _folder(folder: Path, shown: str) -> DataFingerprint:
    listing, budget = hashlib.sha256(), _Budget()
    count, size, newest, left_out = 0, 0, 0.0, False
    for path, status in _files(folder):
        if count == FILES_LIMIT:
            left_out = True
            break
        content = _file_digest(path, status.st_size, budget)
        name = os.fsencode(path.relative_to(folder))
        listing.update(b"%s\0%d\0%s\n" % (name, status.st_size, content.encode()))
        count, size, newest = count + 1, size + status.st_size, max(newest, status.st_mtime)
    return DataFingerprint(
        path=shown, size_bytes=size, files=count, modified_at=_moment(newest) if count else "",
        sha256=f"sha256:{listing.hexdigest()}", how="sampled" if budget.sampled else "whole",
        why=t("only the first {count} {count:file was|files were} looked at", count=FILES_LIMIT) if left_out else None,
    )  # fmt: skip


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files below ``folder`` in a fixed order; links to folders are not followed."""
    for root, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield path, status


def _raise(error: OSError) -> None:
    raise error


def _file_digest(path: Path, size: int, budget: _Budget) -> str:
    whole = size <= WHOLE_LIMIT_BYTES and size <= budget.left_bytes
    blocks = BLOCKS if budget.left_bytes > 0 else 2
    budget.sampled |= not whole
    digest = hashlib.sha256(b"" if whole else b"%d\0" % size)
    fd = open_regular(path)
    try:
        for offset, length in [(0, size)] if whole else sample_places(size, blocks):
            budget.left_bytes -= _feed(fd, offset, length, digest)
    finally:
        os.close(fd)
    return digest.hexdigest()


def _feed(fd: int, offset: int, length: int, digest: hashlib._Hash) -> int:
    done = 0
    while done < length and (piece := os.pread(fd, min(1 << 20, length - done), offset + done)):
        digest.update(piece)
        done += len(piece)
    return done


def sample_places(size: int, blocks: int = BLOCKS) -> list[tuple[int, int]]:
    """Return ``(offset, length)`` of the blocks read of a file: the first, the last, and between them evenly."""
    if size <= blocks * BLOCK_BYTES:
        return [(0, size)]
    step = (size - BLOCK_BYTES) / (blocks - 1)
    return [(round(index * step), BLOCK_BYTES) for index in range(blocks)]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
