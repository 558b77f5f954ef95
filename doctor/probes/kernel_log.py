"""What the kernel said of GPUs, PCIe and killed processes. Reads /dev/kmsg without waiting, else what syslog wrote."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

from doctor.model import KernelLog, Reading, Text, t
from doctor.probes import Context
from doctor.probes.bounded import open_regular
from doctor.probes.gaps import reason_of
from runner.strings import printable

KEEP_LINES = 400
"""Of the newest lines that matter; one sick card can write thousands."""
LINE_LIMIT = 500
RECORD_BYTES = 8192
"""One read of /dev/kmsg gives one record, never longer than this (CONSOLE_EXT_LOG_MAX)."""
BUDGET_S = 0.5
TAIL_BYTES = 4 << 20

# NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus.
# nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 27 LTSSM Fault Up
# pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0
# oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),...   Memory cgroup out of memory: Killed process 4121 (python)
_MATTERS = re.compile(
    r"NVRM|\bS?Xid\b|\bAER\b|oom[-_]|out of memory|Killed process|nvidia-nvswitch|nvidia-nvlink", re.I
)
# Each match holds one of these in lower case. A plain search for those that occur at all spares most lines the pattern.
_HINTS = ("nvrm", "xid", "aer", "oom", "out of memory", "killed process", "nvidia-nv")
_FILES = ("/var/log/kern.log", "/var/log/dmesg")


def probe(context: Context) -> Reading[KernelLog]:
    """Read the kernel's log. *failed* where it may not be read, which is usual in a container: not the same as quiet."""
    refusals: list[str] = []
    try:
        log = _from_kmsg(context)
        return Reading(status="ok", value=log, source="/dev/kmsg (dmesg)")
    except OSError as error:
        refusals.append(f"/dev/kmsg: {reason_of(error)}")
    if str(context.root) == "/":  # the system call knows no other root
        try:
            return Reading(status="ok", value=parse_dmesg(_from_syslog()), source="syslog(2) (dmesg)")
        except OSError as error:
            refusals.append(f"syslog(2): {reason_of(error)}")
    for name in _FILES:
        try:
            return Reading(status="ok", value=_from_file(context, name), source=name)
        except OSError as error:
            refusals.append(f"{name}: {reason_of(error)}")
    why = t("the kernel log could not be read ({reasons})", reasons="; ".join(refusals))
    return Reading(status="failed", why=why, source="/dev/kmsg")


def _from_kmsg(context: Context) -> KernelLog:
    fd = os.open(context.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        records, whole = _records(fd)
    finally:
        os.close(fd)
    return parse_kmsg(records, whole)


def _records(fd: int) -> tuple[list[str], bool]:
    """Return the ring's records and whether its end was reached in time."""
    records: list[str] = []
    end = time.monotonic() + BUDGET_S
    while time.monotonic() < end:
        try:
            piece = os.read(fd, RECORD_BYTES)
        except BlockingIOError:
            return records, True
        except BrokenPipeError:
            continue  # the ring overtook us; the next read gives the oldest record that is left
        if not piece:
            return records, True
        records += piece.decode("utf-8", "replace").splitlines()
    return records, False


def parse_kmsg(records: list[str], whole: bool = True) -> KernelLog:
    """Return the lines that matter among /dev/kmsg records, as dmesg prints them.

    ``complete`` is False where older lines were overwritten (the first record's number is not 0) or cut off.
    """
    # 6,1234,5678901234,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15
    #  SUBSYSTEM=pci
    lines, first_number = [], None
    matters = _chooser("\n".join(records))
    for record in records:
        head, separator, message = record.partition(";")
        fields = head.split(",")
        if record.startswith(" ") or not separator or len(fields) < 3 or not fields[2].isdigit():
            continue
        first_number = fields[1] if first_number is None else first_number
        if matters(message):
            seconds, micros = divmod(int(fields[2]), 1_000_000)
            lines.append(_line(f"[{seconds:5}.{micros:06}] {message}"))
    complete = whole and first_number in (None, "0") and len(lines) <= KEEP_LINES
    return _log(lines, complete, None if complete else _cut_reason(whole))


def _from_syslog() -> str:
    """Return the ring by the system call that dmesg falls back to: it works where a container has no /dev/kmsg."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    size = libc.klogctl(10, None, 0)  # SYSLOG_ACTION_SIZE_BUFFER
    buffer = ctypes.create_string_buffer(max(size, 1))
    got = libc.klogctl(3, buffer, size) if size > 0 else size  # SYSLOG_ACTION_READ_ALL
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return buffer.raw[:got].decode("utf-8", "replace")


def parse_dmesg(text: str) -> KernelLog:
    """Return the lines that matter in what syslog(2) gives; the ring's beginning is known by its first message."""
    # <4>[ 1234.567890] NVRM: Xid (PCI:0000:01:00): 31, pid=4121, name=python, Ch 00000008
    stripped = [re.sub(r"^<\d+>", "", line) for line in text.splitlines()]
    whole = bool(stripped) and "Linux version" in stripped[0]
    lines = [_line(line) for line in filter(_chooser(text), stripped)]
    complete = whole and len(lines) <= KEEP_LINES
    return _log(lines, complete, None if complete else _cut_reason(True))


def _from_file(context: Context, name: str) -> KernelLog:
    fd = open_regular(context.path(name))
    try:
        size = os.fstat(fd).st_size
        raw = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
    finally:
        os.close(fd)
    text = raw.decode("utf-8", "replace")
    if size > TAIL_BYTES:
        text = text.partition("\n")[2]
    lines = [_line(line) for line in filter(_chooser(text), text.splitlines())]
    return _log(lines, False, t("a log file is rotated: older lines are in other files"))


def _chooser(text: str) -> Callable[[str], bool]:
    """Return what tells the lines of ``text`` that matter."""
    whole = text.lower()
    hints = [hint for hint in _HINTS if hint in whole]

    def matters(line: str) -> bool:
        lowered = line.lower()
        return any(hint in lowered for hint in hints) and _MATTERS.search(line) is not None

    return matters


def _cut_reason(whole: bool) -> Text:
    if whole:
        return t("the kernel keeps only its newest messages: older ones were overwritten")
    return t("the kernel log was longer than could be read in time")


def _line(text: str) -> str:
    return printable(text.strip()[:LINE_LIMIT])


def _log(lines: list[str], complete: bool, why: Text | None) -> KernelLog:
    return KernelLog(
        lines=tuple(lines[-KEEP_LINES:]), complete=complete, unread={} if why is None else {"lines": why}
    )
