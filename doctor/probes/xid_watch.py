"""Xids as they come: new lines of the kernel log, else what NVML tells of them, else why neither can be read."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from doctor.gpu_meter import GpuMeter
from doctor.model import Text, t
from doctor.probes import Context
from doctor.probes.kernel_log import RECORD_BYTES
from doctor.probes.kernel_log import probe as read_kernel_log
from doctor.probes.nvml_rates import NvmlXid
from doctor.tables.xids import Xid, named, read, short_pci

LOOK_EVERY_S = 10.0
MOST_A_LOOK = 20
"""One sick card can write thousands."""

# 4,1234,5678901234,-;NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus.
_RECORD = re.compile(rb"^\d+,\d+,(\d+),[^;]*;([^\n]*)\n", re.MULTILINE)
# [ 1234.567890] NVRM: Xid ...
_STAMP = re.compile(r"^\[\s*(\d+\.\d+)\]")


class XidWatch:
    """Looks every :data:`LOOK_EVERY_S`. What stood in the log before it began belongs to a check, not to this run."""

    def __init__(self, context: Context | None = None, clock: Callable[[], float] = time.time) -> None:
        self._context = context or Context()
        self._clock = clock
        self._next = float("-inf")
        self._fd = self._open()
        self._rest = b""
        self._seen: set[str] | None = None
        """Lines of a log that can only be read whole."""
        self._said = ""
        if self._fd is None:
            self._whole()

    def look(self, now: float, gpus: GpuMeter) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what is new at monotonic ``now``, as kind and data of events: each Xid, and where they come from once that changed."""
        if now < self._next:
            return
        self._next = now + LOOK_EVERY_S
        told = gpus.take_xids()
        lines = self._new_lines()
        if not isinstance(lines, Text):
            yield from self._from({"source": "kernel log"})
            for at, xid in lines[-MOST_A_LOOK:]:
                yield "xid", _event(xid, at, _card_of(xid, gpus.addresses), xid.line)
        elif isinstance(told, list):
            yield from self._from({"source": "NVML", "kernel_log_why": lines})
            for one in told[-MOST_A_LOOK:]:
                yield "xid", _told(one, self._clock(), gpus.addresses)
        else:
            why = lines if not told else t("{log}; NVML: {why}", log=str(lines), why=str(told))
            yield from self._from({"why": why})

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _from(self, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        if str(data) != self._said:
            self._said = str(data)
            yield "sample-xids", data

    def _open(self) -> int | None:
        """Open the kernel's ring behind its last record: what comes is read alone, and costs nothing while nothing comes."""
        try:
            fd = os.open(self._context.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            os.lseek(fd, 0, os.SEEK_END)
        except OSError:
            os.close(fd)
            return None
        return fd

    def _new_lines(self) -> list[tuple[float, Xid]] | Text:
        if self._fd is None:
            return self._whole()
        found: list[tuple[float, Xid]] = []
        with contextlib.suppress(BlockingIOError):
            while piece := self._read():
                self._rest += piece
                *_, end = 0, *(match.end() for match in _RECORD.finditer(self._rest))
                for match in _RECORD.finditer(self._rest):
                    text = match[2].decode("utf-8", "replace")
                    if (xid := read(text)) is not None:
                        found.append((self._clock() - time.monotonic() + int(match[1]) / 1e6, xid))
                self._rest = self._rest[end:][-RECORD_BYTES:]
        return found

    def _read(self) -> bytes:
        while True:
            try:
                assert self._fd is not None
                return os.read(self._fd, RECORD_BYTES)
            except (
                BrokenPipeError
            ):  # the ring overtook us; the next read gives the oldest record that is left
                continue

    def _whole(self) -> list[tuple[float, Xid]] | Text:
        """Return the lines that were not there at the look before; at the first one, none."""
        log = read_kernel_log(self._context)
        if log.value is None:
            return log.why or t("the kernel log could not be read")
        before, self._seen = self._seen, set(log.value.lines)
        fresh = [] if before is None else [line for line in log.value.lines if line not in before]
        return [(self._time_of(line), xid) for line in fresh if (xid := read(line)) is not None]

    def _time_of(self, line: str) -> float:
        stamp, now = _STAMP.match(line), self._clock()
        return now if stamp is None else now - max(0.0, time.monotonic() - float(stamp[1]))


def _card_of(xid: Xid, addresses: Mapping[str, int]) -> dict[str, Any]:
    """Return whose an Xid is: the host's log tells of other tenants' cards too."""
    cards = {short_pci(address): index for address, index in addresses.items() if address}
    if xid.pci in cards:
        return {"gpu_index": cards[xid.pci]}
    return {"is_ours": False} if cards and "" not in addresses else {}


def _told(one: NvmlXid, at: float, addresses: Mapping[str, int]) -> dict[str, Any]:
    pci = next((short_pci(address) for address, index in addresses.items() if index == one.gpu_index), "")
    card = {} if one.gpu_index is None else {"gpu_index": one.gpu_index}
    return _event(named(one.number, pci), at, card, "")


def _event(xid: Xid, at: float, card: dict[str, Any], line: str) -> dict[str, Any]:
    values = {
        "number": xid.number,
        "fault": xid.kind,
        "meaning": xid.meaning,
        "pci": xid.pci,
        "at": round(at, 3),
        "line": line,
    }
    return {name: value for name, value in values.items() if value != ""} | card
