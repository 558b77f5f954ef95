"""xids.toml as answers: an Xid line of the kernel log read, and its kind. Pure."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from doctor.tables import load

Kind = Literal["hardware", "link", "recoverable", "application", "unknown"]
KINDS: tuple[Kind, ...] = ("hardware", "link", "recoverable", "application")

# NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.
# NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120, intr 10000000
_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+)")


class Xid(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    pci: str
    """``0000:01:00``, lower case, without the function."""
    kind: Kind
    meaning: str
    line: str


def short_pci(address: str) -> str:
    """``00000000:01:00.0`` and ``0000:01:00`` -> 0000:01:00: what NVML and the kernel both name."""
    parts = address.lower().partition(".")[0].split(":")
    if len(parts) == 3:
        parts[0] = parts[0][-4:].rjust(4, "0")
    return ":".join(parts)


def read(line: str) -> Xid | None:
    """Return the Xid that a kernel log line reports, or None."""
    match = _LINE.search(line)
    if not match:
        return None
    return named(int(match[2]), short_pci(match[1]), line.strip())


def named(number: int, pci: str, line: str = "") -> Xid:
    """Return what is known of a number; one that is not in the table is of kind ``unknown``."""
    table, code = load("xids"), str(number)
    kind: Kind = next((kind for kind in KINDS if code in table[kind]), "unknown")
    meaning = table[kind][code] if kind != "unknown" else ""
    return Xid(number=number, pci=pci, kind=kind, meaning=meaning, line=line)
