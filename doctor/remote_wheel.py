"""One small file out of a wheel that lies at an index, by range requests: the wheel itself is not downloaded."""

from __future__ import annotations

import http.client
import io
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TIMEOUT_S = 15.0
LIMIT_BYTES = 24 << 20
"""Of one wheel, all requests together: the list of files of a CUDA torch is about 2 MB, its RECORD as much."""
_TAIL_BYTES = 1 << 16

Fetch = Callable[[str, str], tuple[bytes, int]]
"""(url, value of Range) -> (bytes, size of the whole file). Raises OSError."""


def fetch_range(url: str, wanted: str) -> tuple[bytes, int]:
    """Ask for part of a file. Raises OSError: it cannot be had, or the server sends the whole instead."""
    request = urllib.request.Request(url, headers={"Range": wanted, "Accept-Encoding": "identity"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            # Content-Range: bytes 780000-797000/797276
            size = str(answer.headers.get("Content-Range", "")).rpartition("/")[2]
            if answer.status != 206 or not size.isdigit():
                raise OSError("no range requests")
            return answer.read(LIMIT_BYTES), int(size)
    except (urllib.error.URLError, http.client.HTTPException, ValueError) as error:
        raise OSError(str(error)) from None


class _Remote(io.RawIOBase):
    """A file at an index that is fetched where it is read; the end of it once, since that is where zip files begin."""

    def __init__(self, url: str, fetch: Fetch) -> None:
        self._url, self._fetch, self._at, self._had = url, fetch, 0, 0
        self._tail, self._size = self._asked(f"bytes=-{_TAIL_BYTES}")

    def _asked(self, wanted: str) -> tuple[bytes, int]:
        raw, size = self._fetch(self._url, wanted)
        self._had += len(raw)
        if self._had > LIMIT_BYTES:
            raise OSError("too much")
        return raw, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        end = min(self._at + len(room), self._size)
        if self._at >= end:
            return 0
        begin = self._size - len(self._tail)
        raw = (
            self._tail[self._at - begin : end - begin]
            if self._at >= begin
            else self._asked(f"bytes={self._at}-{end - 1}")[0]
        )
        raw = raw[: len(room)]
        room[: len(raw)] = raw
        self._at += len(raw)
        return len(raw)


# cmake-3.27.4.1.data/scripts/cmake,sha256=...    lib-1.0.data/purelib/lib/x.py,sha256=...
_DATA_ROW = re.compile(rb"^[^/\n]+\.data/(?P<where>[a-z]+)/(?P<rest>[^\n]*)\n?", re.MULTILINE)


def as_installed(record: bytes) -> bytes:
    """Return a wheel's RECORD as installers leave it: what lies in site-packages, under the path it has there.

    Scripts, headers and data go elsewhere (``../../../bin/cmake``); purelib and platlib go in.
    """
    return _DATA_ROW.sub(
        lambda row: row["rest"] + b"\n" if row["where"] in (b"purelib", b"platlib") else b"",
        record.replace(b"\r\n", b"\n"),
    )


def read_record(url: str, fetch: Fetch = fetch_range) -> bytes | None:
    """Return RECORD of the wheel at ``url``; None: it cannot be had this way, or it is no wheel."""
    try:
        with zipfile.ZipFile(io.BufferedReader(_Remote(url, fetch), 1 << 16)) as wheel:
            names = [
                name
                for name in wheel.namelist()
                if name.endswith(".dist-info/RECORD") and name.count("/") == 1
            ]
            if len(names) != 1 or wheel.getinfo(names[0]).file_size > LIMIT_BYTES:
                return None
            return wheel.read(names[0])
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError):
        return None
