"""Processes as /proc shows them: who, how old, and which device files they hold. Never reads what could block."""

from __future__ import annotations

import os

import msgspec

from doctor.probes import Context
from runner.strings import printable

COMMAND_LIMIT = 400
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)."""
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""The number that the kernel gives the first PID namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO)."""


class Seen(msgspec.Struct, frozen=True):
    """One process, from its /proc/PID/stat."""

    pid: int
    name: str
    """At most 15 characters, as the kernel keeps it; a thread library may have changed it."""
    state: str
    parent_pid: int
    is_kernel_thread: bool
    start_ticks: int
    """Since boot; with the pid it names one process for good."""
    rss_bytes: int
    uid: int | None = None


def parse_stat(pid: int, text: str, uid: int | None = None) -> Seen:
    """Parse one line of /proc/PID/stat.

    Raises:
        ValueError: it is not such a line.
    """
    # 4242 (python -u (x)) S 1 4242 4242 0 -1 4194560 ...     the name may hold blanks and parentheses
    head, _, tail = text.rpartition(")")
    fields = tail.split(None, 23)
    if len(fields) < 22:
        raise ValueError(f"not a /proc/PID/stat line: {text[:80]!r}")
    return Seen(
        pid=pid,
        name=head.partition("(")[2],
        state=fields[0],
        parent_pid=int(fields[1]),
        is_kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD),
        start_ticks=int(fields[19]),
        rss_bytes=max(0, int(fields[21])) * _PAGE_BYTES,
        uid=uid,
    )


def pids(context: Context) -> list[int]:
    """Return the process numbers in /proc, newest numbers last.

    Raises:
        OSError: /proc cannot be listed.
    """
    return sorted(int(name) for name in os.listdir(context.path("/proc")) if name.isdigit())  # noqa: PTH208


def see(context: Context, pid: int) -> Seen | None:
    """Return what /proc/PID/stat says; None where there is no such process (any more)."""
    try:
        fd = os.open(f"{context.root}/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return parse_stat(pid, os.read(fd, 2048).decode("utf-8", "replace"), os.fstat(fd).st_uid)
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return None


def gpu_files(context: Context, pid: int) -> tuple[str, ...] | None:
    """Return the /dev/nvidia* files that ``pid`` holds open; None where we may not look."""
    try:
        folder = os.open(f"{context.root}/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        targets = (_target(name, folder) for name in os.listdir(folder))  # noqa: PTH208 - for thousands of processes
        return tuple(sorted({target for target in targets if target.startswith("/dev/nvidia")}))
    except OSError:
        return None
    finally:
        os.close(folder)


def _target(name: str, folder: int) -> str:
    """Return what an open file links to; "" when it was closed meanwhile."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return ""


def command(context: Context, seen: Seen) -> str:
    """Return the command line, safe to show; its name in brackets where there is none, or where reading it may hang.

    The command line of a process in state D may be locked by what that process waits for.
    """
    if seen.state != "D":
        try:
            fd = os.open(
                context.path(f"/proc/{seen.pid}/cmdline"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            )
            try:
                raw = os.read(fd, 4096)
            finally:
                os.close(fd)
        except OSError:
            raw = b""
        words = raw.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "surrogateescape").strip()
        if words:
            return printable(words[:COMMAND_LIMIT])
    return f"[{printable(seen.name)}]"


def uptime_s(context: Context) -> float | None:
    """Return seconds since boot; None where /proc/uptime cannot be read."""
    try:
        return float(context.read("/proc/uptime").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def age_s(seen: Seen, uptime: float | None) -> float | None:
    return None if uptime is None else round(max(0.0, uptime - seen.start_ticks / _TICKS_PER_S), 1)


def in_first_pid_namespace(context: Context) -> bool:
    """Return whether process numbers here are the host's, so that NVML's numbers are ours."""
    try:
        return os.readlink(context.path("/proc/self/ns/pid")) == _INITIAL_PID_NAMESPACE  # noqa: PTH115
    except OSError:
        return False
