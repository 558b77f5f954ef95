"""Writes small ELF files with chosen headers, so that tests need neither a compiler nor somebody's wheel."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class _Strings:
    table: bytearray = field(default_factory=lambda: bytearray(b"\0"))

    def add(self, text: str) -> int:
        at = len(self.table)
        self.table += text.encode() + b"\0"
        return at


def write_elf(
    path: Path,
    *,
    soname: str = "",
    needed: Sequence[str] = (),
    run_path: str = "",
    symbols: Sequence[str] = (),
    needs: Sequence[str] = (),
    offers: Sequence[str] = (),
    rodata: bytes = b"",
    fatbin: bytes = b"",
) -> Path:
    """Write a shared library that has these headers and sections and no code."""
    strings = _Strings()
    tags = [(1, strings.add(name)) for name in needed]
    if soname:
        tags.append((14, strings.add(soname)))
    if run_path:
        tags.append((29, strings.add(run_path)))
    for name in symbols:
        strings.add(name)
    need_block = _version_needs(strings, needs) if needs else b""
    offer_block = _version_definitions(strings, offers) if offers else b""
    pieces: dict[str, bytes] = {
        "dynstr": bytes(strings.table), "need": need_block, "offer": offer_block, "rodata": rodata, "fatbin": fatbin,
        "names": b"\0.rodata\0.nv_fatbin\0.shstrtab\0",
    }  # fmt: skip
    offsets, blob, at = {}, bytearray(), 64 + 2 * 56
    for name, piece in pieces.items():
        blob += b"\0" * (-at % 16)
        at += -at % 16
        offsets[name] = at
        blob += piece
        at += len(piece)
    tags += [(5, offsets["dynstr"]), (10, len(strings.table))]
    tags += [(0x6FFFFFFE, offsets["need"]), (0x6FFFFFFF, 1)] if needs else []
    tags += [(0x6FFFFFFC, offsets["offer"]), (0x6FFFFFFD, len(offers))] if offers else []
    blob += b"\0" * (-at % 16)
    at += -at % 16
    dynamic_at, dynamic = at, b"".join(struct.pack("<QQ", *tag) for tag in [*tags, (0, 0)])
    blob += dynamic
    sections_at = dynamic_at + len(dynamic)
    sections = b"".join(
        struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)
        for name, offset, size in (
            (0, 0, 0),
            (1, offsets["rodata"], len(rodata)),
            (9, offsets["fatbin"], len(fatbin)),
            (20, offsets["names"], len(pieces["names"])),
        )
    )
    total = sections_at + len(sections)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 2, 64, 4, 3)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, total, total, 16)
    link = struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, 0, len(dynamic), len(dynamic), 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + load + link + bytes(blob) + sections)
    return path


def _version_needs(strings: _Strings, versions: Sequence[str]) -> bytes:
    block = struct.pack("<HHIII", 1, len(versions), strings.add("libc.so.6"), 16, 0)
    for index, version in enumerate(versions):
        following = 16 if index + 1 < len(versions) else 0
        block += struct.pack("<IHHII", 0, 0, index + 2, strings.add(version), following)
    return block


def _version_definitions(strings: _Strings, versions: Sequence[str]) -> bytes:
    block = b""
    for index, version in enumerate(versions):
        following = 28 if index + 1 < len(versions) else 0
        block += struct.pack("<HHHHIII", 1, 0, index + 1, 1, 0, 20, following) + struct.pack(
            "<II", strings.add(version), 0
        )
    return block


def fatbin_block(*images: tuple[int, int]) -> bytes:
    """Return one block of kernel images, each (kind: 1 PTX or 2 machine code, architecture), with 24 bytes of
    payload."""
    entries = b"".join(
        struct.pack("<HHIQ", kind, 0x101, 64, 24)
        + b"\0" * 12
        + struct.pack("<I", architecture)
        + b"\0" * 32
        + b"\xaa" * 24
        for kind, architecture in images
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries
