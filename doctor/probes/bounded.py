"""Reading files that may be anything: a FIFO, a device, 100 MB of METADATA. Never blocks, never reads past
its limit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

TEXT_LIMIT_BYTES = 1 << 20


def read_bytes(path: Path | str, limit_bytes: int = TEXT_LIMIT_BYTES) -> bytes:
    """Return at most ``limit_bytes`` from the start of a regular file.

    Raises:
        OSError: it is not there, may not be read, or is a FIFO, a device, a folder.
    """
    fd = open_regular(path)
    try:
        size = os.fstat(fd).st_size
        piece = os.read(fd, min(size + 1, limit_bytes) if size else min(limit_bytes, 1 << 18))
        if size and len(piece) in (size, limit_bytes):
            return piece
        pieces = [piece]  # a file of /proc, which tells no size, or one that grows
        left = limit_bytes - len(piece)
        while left > 0 and (piece := os.read(fd, min(left, 1 << 18))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def open_regular(path: Path | str) -> int:
    """Return a descriptor of a regular file, opened so that nothing can block in it.

    Raises:
        OSError: as :func:`read_bytes`.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(22, "not a regular file", str(path))


def read_text(path: Path | str, limit_bytes: int = TEXT_LIMIT_BYTES) -> str:
    """Return the text of a file; undecodable bytes come as surrogates. Raises OSError as
    :func:`read_bytes`."""
    return read_bytes(path, limit_bytes).decode("utf-8", "surrogateescape")


def text_or_empty(path: Path | str, limit_bytes: int = TEXT_LIMIT_BYTES) -> str:
    """Return the text of a file that is allowed not to be there: empty then, or where it cannot be read."""
    try:
        return read_text(path, limit_bytes)
    except OSError:
        return ""


def names_in(folder: Path | str) -> list[str]:
    """Return the sorted names in a folder; none where it is not there or may not be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names, not paths, and thousands of them
    except OSError:
        return []


# pathlib's own questions raise where a folder above may not be entered; for a probe that is "not there".
def is_file(path: Path | str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path | str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def is_there(path: Path | str) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def may_be_listed(folder: Path | str) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)
