"""The GPU architectures that a torch build has code for, read from its libraries without loading them.

Two sources: the list that ``torch.cuda.get_arch_list()`` returns, a literal in libtorch_python.so (quick),
and the headers of the kernel images in libtorch_cuda.so (true, thousands of small reads). Layout of the
latter as found in the wheels of torch 1.13 to 2.15: blocks of a 16-byte header (magic, version, header size,
size of what follows), in each block entries (kind 1 PTX, 2 machine code; header size; payload size;
architecture number at 28).
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from pathlib import Path

from doctor.probes.elf import Elf, ElfError

MAGIC = 0xBA55ED50
BLOCK_LIMIT = 200_000
_KINDS = {1: "compute", 2: "sm"}
USUAL_SHARE = 0.5
"""An architecture with fewer than this share of the most frequent one's images has a few special kernels, not
the build."""

# ...ipc_hsm_70 sm_75 sm_80 sm_86 sm_90 compute_90\x00: other text may stand directly before it, the end is
# always NUL.
_LITERAL = re.compile(rb"(?:sm|compute)_\d{2,3}[af]?(?: (?:sm|compute)_\d{2,3}[af]?)+\0")


def literal_arch_list(libtorch_python: Path) -> tuple[str, ...] | None:
    """Return what ``torch.cuda.get_arch_list()`` would; None where the build has no such list, or only one
    architecture.

    Raises:
        OSError, ElfError: the library cannot be read.
    """
    with Elf(libtorch_python) as library:
        found = library.section(b".rodata")
        text = library.read(*found) if found else b""
    literals = [match[0][:-1].decode() for match in _LITERAL.finditer(text)]
    return tuple(max(literals, key=len).split()) if literals else None


def fatbin_arch_list(libtorch_cuda: Path) -> tuple[str, ...] | None:
    """Return the architectures that most kernels were compiled for; None where it holds no kernels (a stub).

    Raises:
        OSError, ElfError: the library cannot be read, or its kernels are laid out in a way that we do not
        know.
    """
    with Elf(libtorch_cuda) as library:
        found = library.section(b".nv_fatbin")
        counts = count_images(library, *found) if found else Counter()
    return usual_architectures(counts) if counts else None


def count_images(library: Elf, offset: int, size: int) -> Counter[tuple[int, int]]:
    """Return (kind, architecture) -> number of images in the section. Reads headers only."""
    counts: Counter[tuple[int, int]] = Counter()
    end = offset + size
    for _ in range(BLOCK_LIMIT):
        offset = _next_block(library, offset, end)
        if offset + 16 > end:
            return counts
        _magic, _version, header, length = struct.unpack("<IHHQ", library.exactly(offset, 16))
        inner, offset = offset + header, offset + header + length
        if header < 16 or offset > end:
            raise ElfError("a kernel block is larger than its section")
        while inner + 64 <= offset:
            kind, _unused, head, payload, architecture = struct.unpack(
                "<HHIQ12xI", library.exactly(inner, 32)
            )
            if head < 32:
                raise ElfError("a kernel header of no size")
            counts[kind, architecture] += 1
            inner += head + payload
    raise ElfError(f"more than {BLOCK_LIMIT} kernel blocks")


def _next_block(library: Elf, offset: int, end: int) -> int:
    """Return where the next block begins: at the next multiple of eight, after padding."""
    offset += -offset % 8
    while offset + 16 <= end:
        piece = library.read(offset, min(256, end - offset))
        for at in range(0, len(piece) - 3, 8):
            if piece[at : at + 4] == MAGIC.to_bytes(4, "little"):
                return offset + at
            if any(piece[at : at + 8]):
                raise ElfError("something that is no kernel block lies between them")
        offset += max(8, len(piece) // 8 * 8)
    return end


def usual_architectures(counts: Counter[tuple[int, int]]) -> tuple[str, ...]:
    """Return ``sm_75 ... compute_90``, leaving out those that only a few special kernels were compiled
    for."""
    most = max((count for (kind, _arch), count in counts.items() if kind in _KINDS), default=0)
    usual = [key for key, count in counts.items() if key[0] in _KINDS and count >= most * USUAL_SHARE]
    return tuple(f"{_KINDS[kind]}_{arch}" for kind, arch in sorted(usual, key=lambda key: (-key[0], key[1])))
