"""Which encoding a text file is in: marks first, then what decodes whole and looks likely. Pure."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator
from typing import IO

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def detect_encoding(file: IO[bytes]) -> str:
    """Return the encoding of ``file``, which is read through once where it is UTF-8.

    What is not UTF-8 is GBK if it decodes so and looks so, else Western (cp1252, or latin-1 where even that
    has no character for a byte).
    """
    start = file.read(4)
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    file.seek(0)
    if decodes(_blocks(file), "utf-8"):
        return "utf-8"
    file.seek(0)
    chinese = looks_chinese(file.read(1 << 22))
    for name in ("gb18030", "cp1252") if chinese else ("cp1252",):
        file.seek(0)
        if decodes(_blocks(file), name):
            return name
    return "latin-1"


def decode_bytes(data: bytes) -> tuple[str, str]:
    """Return ``(text, encoding)`` of a whole small file."""
    encoding = detect_encoding(io.BytesIO(data))
    return data.decode(encoding), encoding


def decodes(blocks: Iterable[bytes], encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in blocks:
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


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


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(1 << 20):
        yield block
