"""A small reader of ELF headers: what a shared library needs, offers and is called. Reads headers, never the
code.

64-bit little-endian only (x86_64, aarch64), which is every platform that torch's CUDA wheels exist for. Field
layouts: System V ABI, "Linking"; symbol versions: Linux Standard Base, "Symbol Versioning".
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from types import TracebackType

from doctor.probes.bounded import open_regular

PIECE_LIMIT_BYTES = 64 << 20
"""No string table or section that we read is larger; a header that says so is broken."""
ENTRY_LIMIT = 100_000

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 14, 15, 29
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF


class ElfError(ValueError):
    """Not an ELF file that we read, or a broken one."""


class Elf:
    """An open shared library. Use as a context manager.

    Raises:
        OSError: it cannot be opened.
        ElfError: it is not 64-bit little-endian ELF, or its headers are broken.
    """

    def __init__(self, path: Path | str) -> None:
        self._fd = open_regular(path)
        try:
            self.size = os.fstat(self._fd).st_size
            head = self.read(0, 64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                raise ElfError("not a 64-bit little-endian ELF file")
            self._phoff, self._shoff = struct.unpack_from("<QQ", head, 32)
            self._phentsize, self._phnum, self._shentsize, self._shnum, self._shstrndx = struct.unpack_from(
                "<5H", head, 54
            )
            self._loads: list[tuple[int, int, int]] = []
            self._dynamic: list[tuple[int, int]] = []
            self._read_segments()
            self.strings = self._string_table()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Elf:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes at ``offset``, fewer at the end of the file."""
        if not 0 <= length <= PIECE_LIMIT_BYTES or offset < 0 or offset >= 1 << 62:
            raise ElfError(f"a header asks for {length} bytes at {offset}")
        return os.pread(self._fd, length, offset)

    def _read_segments(self) -> None:
        table = self.read(self._phoff, self._phentsize * self._phnum)
        for index in range(len(table) // 56 if self._phentsize == 56 else 0):
            kind, _flags, offset, address, _physical, size = struct.unpack_from("<IIQQQQ", table, index * 56)
            if kind == _PT_LOAD:
                self._loads.append((address, offset, size))
            elif kind == _PT_DYNAMIC:
                entries = self.read(offset, min(size, 16 * ENTRY_LIMIT))
                self._dynamic = list(struct.iter_unpack("<QQ", entries[: len(entries) // 16 * 16]))

    def _tag(self, tag: int) -> int | None:
        return next((value for key, value in self._dynamic if key == tag), None)

    def _offset(self, address: int) -> int:
        for start, offset, size in self._loads:
            if start <= address < start + size:
                return address - start + offset
        raise ElfError(f"address {address:#x} lies in no segment")

    def _string_table(self) -> bytes:
        address, size = self._tag(_DT_STRTAB), self._tag(_DT_STRSZ)
        return b"" if address is None or size is None else self.read(self._offset(address), size)

    def _string(self, offset: int) -> str:
        end = self.strings.find(b"\0", offset)
        return self.strings[offset:end].decode("utf-8", "replace") if 0 <= offset < end else ""

    def needed(self) -> list[str]:
        """SONAMEs it links: ``readelf -d LIB | grep NEEDED``."""
        return [self._string(value) for key, value in self._dynamic if key == _DT_NEEDED]

    def soname(self) -> str:
        """Its SONAME, empty where it has none: ``readelf -d LIB | grep SONAME``."""
        value = self._tag(_DT_SONAME)
        return "" if value is None else self._string(value)

    def run_path(self) -> list[str]:
        """Folders of RPATH and RUNPATH, ``$ORIGIN`` kept as it is."""
        found = [self._string(value) for key, value in self._dynamic if key in (_DT_RPATH, _DT_RUNPATH)]
        return [folder for entry in found for folder in entry.split(":") if folder]

    def versions_needed(self) -> list[str]:
        """Symbol versions that others must offer (GLIBC_2.34): ``readelf -V LIB``, "Version needs"."""
        address, count = self._tag(_DT_VERNEED), self._tag(_DT_VERNEEDNUM)
        if address is None or count is None:
            return []
        offset, found = self._offset(address), []
        for _ in range(min(count, ENTRY_LIMIT)):
            _version, entries, _file, aux, following = struct.unpack("<HHIII", self.exactly(offset, 16))
            found += self._needed_names(offset + aux, entries)
            if not following:
                break
            offset += following
        return found

    def versions_offered(self) -> list[str]:
        """Symbol versions that it defines (GLIBCXX_3.4.30): ``readelf -V LIB``, "Version definition"."""
        address, count = self._tag(_DT_VERDEF), self._tag(_DT_VERDEFNUM)
        if address is None or count is None:
            return []
        offset, found = self._offset(address), []
        for _ in range(min(count, ENTRY_LIMIT)):
            _version, _flags, _index, _names, _hash, aux, following = struct.unpack(
                "<HHHHIII", self.exactly(offset, 20)
            )
            found.append(self._string(struct.unpack("<I", self.exactly(offset + aux, 4))[0]))
            if not following:
                break
            offset += following
        return found

    def _needed_names(self, offset: int, count: int) -> list[str]:
        found = []
        for _ in range(count):
            _hash, _flags, _other, name, following = struct.unpack("<IHHII", self.exactly(offset, 16))
            found.append(self._string(name))
            if not following:
                break
            offset += following
        return found

    def exactly(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes at ``offset``. Raises ElfError where the file is shorter."""
        piece = self.read(offset, length)
        if len(piece) != length:
            raise ElfError("cut short")
        return piece

    def section(self, name: bytes) -> tuple[int, int] | None:
        """Offset and size in the file of a section; None where it has no such section (or was stripped of the
        table)."""
        if self._shentsize != 64 or not self._shnum or self._shstrndx >= self._shnum:
            return None
        table = self.read(self._shoff, 64 * self._shnum)
        headers = list(struct.iter_unpack("<IIQQQQIIQQ", table[: len(table) // 64 * 64]))
        if len(headers) != self._shnum:
            return None
        names = self.read(headers[self._shstrndx][4], headers[self._shstrndx][5])
        for header in headers:
            if names[header[0] : names.find(b"\0", header[0])] == name:
                return header[4], header[5]
        return None


def newest(versions: list[str], family: str) -> str | None:
    """Return the highest ``2.34`` of ``GLIBC_2.34`` entries of a family (GLIBC, GLIBCXX, CXXABI); None: none
    there."""
    pattern = re.compile(re.escape(family) + r"_(\d+(?:\.\d+)*)$")
    found = [match[1] for version in versions if (match := pattern.match(version))]
    return max(found, key=lambda text: tuple(map(int, text.split("."))), default=None)
