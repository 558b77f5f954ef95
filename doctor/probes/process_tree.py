"""Who a process is (beyond its number), and what it and its children use. Cheap enough to ask once a second.

Straight from /proc: a walk over every process of a shared machine would cost more than the answer is worth.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat that matter here."""

    state: str
    parent_pid: int
    cpu_ticks: int
    """User and system time, in ticks; its children's not among it."""
    threads: int
    start_ticks: int
    """When it started, in ticks since boot: with the pid, this names one process for good."""
    rss_bytes: int


def parse_stat(text: str) -> Stat:
    """Parse one line of /proc/PID/stat.

    Raises:
        ValueError: it is not such a line.
    """
    # 4242 (python -u (x)) S 1 4242 4242 0 -1 4194560 ...     the name may hold blanks and parentheses
    fields = text.rpartition(")")[2].split()
    if len(fields) < 22:
        raise ValueError(f"not a /proc/PID/stat line: {text[:80]!r}")
    return Stat(
        state=fields[0],
        parent_pid=int(fields[1]),
        cpu_ticks=sum(int(fields[index]) for index in (11, 12)),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def read_stat(pid: int, proc: Path = Path("/proc")) -> Stat | None:
    """Return the stat of a process; None when there is none with that number."""
    try:
        return parse_stat(Path(f"{proc}/{pid}/stat").read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def is_alive(pid: int, start_ticks: int) -> bool:
    """Return whether that very process still runs. A zombie has ended."""
    stat = read_stat(pid)
    return stat is not None and stat.start_ticks == start_ticks and stat.state not in "ZX"


def here() -> tuple[str, str, str]:
    """Return (hostname, boot id, PID namespace): a pid means something only where all three agree."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot, namespace = "", ""
    return socket.gethostname().replace(" ", "") or "localhost", boot or "-", namespace or "-"


@cache
def _kernel_lists_children() -> bool:
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def children_of(pid: int, of_all_threads: bool = True) -> list[int]:
    """Return the children of ``pid``: its threads' ``children`` files, else a walk over the process table.

    ``of_all_threads``: else only those that its main thread has started, which is one file however many threads there are.
    """
    if not _kernel_lists_children():
        return [other for other in _all_pids() if (stat := read_stat(other)) and stat.parent_pid == pid]
    found: list[int] = []
    for task in _names(f"/proc/{pid}/task") if of_all_threads else (str(pid),):
        with suppress(OSError):  # a thread that has just ended
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _all_pids() -> list[int]:
    return [int(name) for name in _names("/proc") if name.isdecimal()]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone are wanted, many times a second
    except OSError:
        return []


def tree_of(pid: int, of_all_threads: bool = True) -> dict[int, Stat]:
    """Return ``pid`` and all its descendants that run now; ``of_all_threads`` as in :func:`children_of`."""
    tree: dict[int, Stat] = {}
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        stat = read_stat(one)
        if stat is None or one in tree or stat.state in "ZX":
            continue
        tree[one] = stat
        waiting += children_of(one, of_all_threads)
    return tree
