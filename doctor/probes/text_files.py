"""The encoding of one text file, read in chunks: UTF-8, with a byte order mark, GB18030, UTF-16, or broken in places."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from doctor.model import InspectedFile
from runner.strings import printable

_CHUNK_BYTES = 1 << 20
_HAN = ("\u4e00", "\u9fff")
_FEW_BAD_LINES = 0.1
"""Below this share of lines a file is UTF-8 with damage, not another encoding."""


def inspect_text(path: Path) -> InspectedFile:
    """Return what a look through the whole file tells. Raises OSError."""
    size = os.stat(path).st_size  # noqa: PTH116
    with open(path, "rb") as file:
        head = file.read(4)
    common = {"path": printable(str(path)), "size_bytes": size}
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return InspectedFile(kind="text", encoding="utf-16", **common)  # type: ignore[arg-type]
    if b"\0" in head:
        return InspectedFile(kind="", encoding="binary", **common)  # type: ignore[arg-type]
    lines, bad = _count(path, "utf-8")
    if not bad:
        encoding = "utf-8-bom" if head.startswith(codecs.BOM_UTF8) else "utf-8"
        return InspectedFile(kind="text", encoding=encoding, lines=lines, bad_lines=0, **common)  # type: ignore[arg-type]
    if bad > _FEW_BAD_LINES * lines and _is_chinese(path):
        return InspectedFile(kind="text", encoding="gb18030", lines=lines, **common)  # type: ignore[arg-type]
    return InspectedFile(kind="text", encoding="mixed", lines=lines, bad_lines=bad, **common)  # type: ignore[arg-type]


def _count(path: Path, encoding: str) -> tuple[int, int]:
    """Return how many lines there are, and how many do not decode."""
    lines = bad = 0
    with open(path, "rb") as file:
        for line in file:
            lines += 1
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                bad += 1
    return lines, bad


def _is_chinese(path: Path) -> bool:
    """Whether the whole file decodes as GB18030, and reads as Chinese: most of its other characters are Han or its marks."""
    decoder = codecs.getincrementaldecoder("gb18030")("strict")
    han = other = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            try:
                text = decoder.decode(chunk)
            except UnicodeDecodeError:
                return False
            wide = [character for character in text if character > "\x7f"]
            han += sum(_HAN[0] <= one <= _HAN[1] or "\u3000" <= one <= "\u303f" or "\uff00" <= one <= "\uffef" for one in wide)  # fmt: skip
            other += len(wide)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return other > 0 and han >= 0.8 * other
