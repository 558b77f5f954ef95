"""Files opened through whatever compressed them, told by their first bytes; names are not believed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import IO, Any, cast

COMPRESSED = (".gz", ".zst", ".zstd", ".xz", ".bz2")
"""Endings that say nothing of the form inside."""


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading and rewinding."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic[:2] == b"\x1f\x8b":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        return io.BufferedReader(_Zstd(path))
    if magic == b"\xfd7zXZ\x00":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    if magic[:3] == b"BZh":
        return cast("IO[bytes]", bz2.open(path, "rb"))
    return open(path, "rb")


class _Zstd(io.RawIOBase):
    """zstd through pyarrow, which every environment with datasets has; it only rewinds to the beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = self._open()

    def _open(self) -> Any:
        import pyarrow  # type: ignore[import-untyped]

        return pyarrow.input_stream(str(self._path), compression="zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if (offset, whence) != (0, io.SEEK_SET):
            raise io.UnsupportedOperation("a zstd file is rewound to its beginning only")
        self._stream.close()
        self._stream = self._open()
        return 0

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
