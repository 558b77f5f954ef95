"""Reading what a person hands over: a log's end, a script. Bounded in memory, whatever the file, pipe or encoding is."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from doctor.commands import CommandError, Exit
from runner.text import Text, t

CHUNK_BYTES = 1 << 20
COUNTED_BYTES = 256 << 20
"""Of a file larger than this only the end is read: to count its lines would take as long as to read it."""
SKIPPED_BYTES = 64 << 10
"""How far a text that begins in mid-line looks for a whole one; a progress bar's line may be longer than all that is read."""
SCRIPT_LIMIT_BYTES = 4 << 20
NOTEBOOK_LIMIT_BYTES = 64 << 20
"""A notebook carries the pictures that it drew."""

# \x1b[0;31mRuntimeError\x1b[0m     \x1b]0;title\x07
_COLOUR = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)")
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
# # -*- coding: gbk -*-       (PEP 263: in the first two lines)
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")


class Tail(NamedTuple):
    """The end of a text, and how many lines came before it (None: not counted)."""

    text: str
    lines_before: int | None


def read_tail(stream: BinaryIO, limit_bytes: int) -> Tail:
    """Return the last ``limit_bytes`` of ``stream`` in memory of about twice that; Ctrl-C ends a pipe that does not end.

    Raises:
        OSError: it cannot be read.
        KeyboardInterrupt: Ctrl-C before anything came.
    """
    if _size(stream) > COUNTED_BYTES:
        start = stream.read(2)
        stream.seek(-limit_bytes // 4 * 4, os.SEEK_END)
        raw = stream.read(limit_bytes + 4)
        return Tail(_text(raw[_whole_line(raw, 0, start) :], start), None)
    kept, lines_before, start = bytearray(), 0, b""
    read = getattr(stream, "read1", stream.read)
    try:
        while chunk := read(CHUNK_BYTES):
            start = start or chunk[:2]
            kept += chunk
            if len(kept) > 2 * limit_bytes:
                lines_before += kept.count(b"\n", 0, len(kept) - limit_bytes)
                del kept[:-limit_bytes]
    except KeyboardInterrupt:
        if not kept:
            raise
    surplus = max(0, len(kept) - limit_bytes)
    if lines_before or surplus:
        surplus = _whole_line(kept, surplus, start)
    lines_before += kept.count(b"\n", 0, surplus)
    return Tail(_text(bytes(kept[surplus:]), start), lines_before)


def _size(stream: BinaryIO) -> int:
    """Return the size of a regular file; 0 of a pipe, and of what is no file."""
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _whole_line(raw: bytes | bytearray, begin: int, start: bytes) -> int:
    """Return where after ``begin`` a whole line begins, if that is near; ``begin`` else, and in a text of two-byte signs."""
    if start in _UTF16:
        return begin
    place = raw.find(b"\n", begin, begin + SKIPPED_BYTES) + 1
    return place if 0 < place < len(raw) else begin


def _text(raw: bytes, start: bytes) -> str:
    """Return what a person would see of it: no colours, and nothing of the zeros that a hole in a file reads as."""
    return without_colour(decode(raw, start)).replace("\0", "")


def decode(raw: bytes, start: bytes = b"") -> str:
    """Return a log's text: UTF-16 where it begins with that mark (PowerShell's ``>``) or looks like it, else UTF-8, else GBK.

    ``start`` is how the whole text begins, where ``raw`` is only its end.
    """
    if encoding := _UTF16.get(start or raw[:2]) or _unmarked_utf16(raw[:4096]):
        return raw.decode(encoding, "replace").lstrip("\ufeff")
    for encoding in ("utf-8-sig", "gbk"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("utf-8", "replace")


def _unmarked_utf16(raw: bytes) -> str | None:
    """Return the encoding of a piece of a PowerShell log: every other byte of its Latin letters is zero."""
    zeros, half = raw[1::2].count(0), len(raw) // 2
    if half and zeros > 0.6 * half and raw[::2].count(0) < 0.1 * half:
        return "utf-16-le"
    zeros = raw[::2].count(0)
    return "utf-16-be" if half and zeros > 0.6 * half and raw[1::2].count(0) < 0.1 * half else None


def without_colour(text: str) -> str:
    """Return ``text`` without the escapes that colour a terminal: IPython and rich put them into a traceback's words."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def script_or_complaint(name: str | Path) -> str:
    """Return a script's text in the encoding that it declares. A pipe (``<(...)``) may stand in for a file.

    Bytes that it does not allow come as ``surrogateescape`` characters, which the lint names.

    Raises:
        CommandError: it cannot be read, is no file, or is too large for a script (4 MB) or notebook (64 MB); the sentence names it.
    """
    is_notebook = str(name).endswith(".ipynb")
    limit = NOTEBOOK_LIMIT_BYTES if is_notebook else SCRIPT_LIMIT_BYTES
    try:
        with open(name, "rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        text = t("cannot read {file}: {error}", file=str(name), error=error.strerror or str(error))
        raise CommandError(text, Exit.USAGE) from None
    if len(raw) > limit:
        raise CommandError(_too_large(str(name), is_notebook), Exit.USAGE)
    return raw.decode(_declared(raw), "replace" if is_notebook else "surrogateescape")


def _too_large(name: str, is_notebook: bool) -> Text:
    if is_notebook:
        return t("{file} is larger than 64 MB: not a notebook", file=name)
    return t("{file} is larger than 4 MB: not a script", file=name)


def _declared(raw: bytes) -> str:
    for line in raw.split(b"\n", 2)[:2]:
        if match := _CODING.match(line):
            name = match[1].decode("ascii")
            try:
                "".encode(name).decode(name)
            except (LookupError, UnicodeError):
                break
            return name
    return "utf-8-sig"


def scripts_in(folder: Path) -> list[Path]:
    """Return the scripts and notebooks below ``folder``, without environments, caches and hidden folders. Sorted."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _passed_over(Path(place, name)))
        found += [Path(place, name) for name in sorted(files) if name.endswith((".py", ".ipynb"))]
    return [path for path in found if path.is_file()]


def _passed_over(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _NOT_THE_USERS:
        return True
    return (folder / "pyvenv.cfg").exists() or (folder / "conda-meta").is_dir()


_NOT_THE_USERS = ("__pycache__", "node_modules", "site-packages", "dist-packages")
