"""Which encoding a text file is in: marks first, then what decodes whole and looks likely. Pure."""

from __future__ import annotations

import codecs
import io
from typing import IO

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_BLOCK = 1 << 20
_SAMPLE = 1 << 22
"""Bytes looked at to tell one encoding of letters beyond ASCII from another."""
_NUL_SHARE = 0.1
"""Of the first bytes: text in UTF-16 without a mark has a zero beside every ASCII letter, always on the same side of it."""


class MixedEncodingError(ValueError):
    """A file whose lines are UTF-8 in one place and something else in another: no encoding reads all of it."""

    def __init__(self, line: int, byte: int, good_lines: int) -> None:
        self.line, self.byte, self.good_lines = line, byte, good_lines
        super().__init__(f"line {line}: byte 0x{byte:02x} is not UTF-8, as {good_lines} other lines are")


def detect_encoding(file: IO[bytes]) -> str:
    """Return the encoding of ``file``, which is read through once where it is UTF-8.

    What is not UTF-8 is GBK if it decodes so and looks so, else Western (cp1252, or latin-1 where even that
    has no character for a byte).

    Raises:
        MixedEncodingError: some lines are UTF-8 and some are not.
    """
    start = file.read(64)
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    low_first, high_first = start[1::2].count(0), start[::2].count(0)
    if max(low_first, high_first) > _NUL_SHARE * len(start) and not min(low_first, high_first):
        return "utf-16-le" if low_first else "utf-16-be"
    file.seek(0)
    sample = _from_first_failure(file)
    if sample is None:
        return "utf-8"
    file.seek(0)
    refuse_mixed(file)
    for name in ("gb18030", "cp1252") if looks_chinese(sample) else ("cp1252",):
        file.seek(0)
        if decodes(file, name):
            return name
    return "latin-1"


def decode_bytes(data: bytes) -> tuple[str, str]:
    """Return ``(text, encoding)`` of a whole small file. Raises MixedEncodingError."""
    encoding = detect_encoding(io.BytesIO(data))
    return data.decode(encoding), encoding


def decodes(file: IO[bytes], encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while block := file.read(_BLOCK):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _from_first_failure(file: IO[bytes]) -> bytes | None:
    """Return some bytes from the first on that are not UTF-8; None: all are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while block := file.read(_BLOCK):
        held = decoder.getstate()[0]
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            return (held + block)[error.start :] + file.read(_SAMPLE)
    return decoder.getstate()[0] or None


def refuse_mixed(file: IO[bytes]) -> None:
    """Raise MixedEncodingError where more than one in five lines beyond ASCII are UTF-8.

    By chance, a short line of another encoding is UTF-8 as well: about one in ten of those with a single GBK character.
    """
    good = bad = first = byte = 0
    for number, line in enumerate(file, start=1):
        if line.isascii():
            continue
        try:
            line.decode("utf-8")
            good += 1
        except UnicodeDecodeError as error:
            bad += 1
            if bad == 1:
                first, byte = number, line[error.start]
    if bad and 4 * good > bad:
        raise MixedEncodingError(first, byte, good)


def first_bad_line(file: IO[bytes], encoding: str) -> int:
    """Return the number of the first line that ``encoding`` does not read; 0: none by itself."""
    for number, line in enumerate(file, start=1):
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            return number
    return 0


def looks_chinese(data: bytes) -> bool:
    """Are nearly all high bytes in pairs of two high bytes, as in GB2312 text, and not letters with
    accents?"""
    position, pairs, lone = 0, 0, 0
    while position < len(data) - 1:
        if data[position] < 0x80:
            position += 1
        elif data[position + 1] >= 0xA1:
            pairs += 1
            position += 2
        else:
            lone += 1
            position += 2
    return pairs > 9 * lone
