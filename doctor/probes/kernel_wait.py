"""What a process waits for in the kernel: its state, the call that it is in, and the file or socket behind it.

Straight from /proc: ``state`` is for everybody, ``syscall`` and ``fd`` for whoever may trace the process. Where that is not
permitted the call is empty, which says nothing.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from doctor.model import Record
from doctor.probes.process_tree import read_stat
from runner.strings import printable

# Number -> name of the calls that a training can stand in, and whether the first argument is a file descriptor.
# Source: the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h, read 2026-11-30.
_X86_64 = {
    0: "read", 1: "write", 7: "poll", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select",
    35: "nanosleep", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl",
    73: "flock", 74: "fsync", 75: "fdatasync", 202: "futex", 217: "getdents64", 230: "clock_nanosleep", 232: "epoll_wait",
    247: "waitid", 257: "openat", 262: "newfstatat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 288: "accept4",
    332: "statx",
}  # fmt: skip
_AARCH64 = {
    22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 61: "getdents64", 63: "read", 64: "write",
    65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 72: "pselect6", 73: "ppoll", 79: "newfstatat", 82: "fsync",
    83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 202: "accept", 206: "sendto",
    207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4", 291: "statx",
}  # fmt: skip
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}
_OF_A_FILE = frozenset((
    "read", "write", "ioctl", "pread64", "pwrite64", "readv", "writev", "accept", "accept4", "sendto", "recvfrom", "sendmsg",
    "recvmsg", "fcntl", "flock", "fsync", "fdatasync", "getdents64",
))  # fmt: skip


class KernelWait(Record, frozen=True):
    """One process's main thread."""

    pid: int
    state: str
    """As in /proc/PID/stat: R runs, S waits, D waits for a device or a file system and cannot be ended, T is paused."""
    call: str = ""
    """Empty: not told, or it runs."""
    target: str = ""
    """What the call reads or writes: a path, ``socket:[123]``, ``/dev/pts/0``."""

    @property
    def words(self) -> str:
        """``read(/dev/pts/0)``; empty where the call is not told."""
        return f"{self.call}({self.target})" if self.call else ""


def kernel_wait(pid: int, proc: Path = Path("/proc")) -> KernelWait | None:
    """Return what a process waits for now; None when it is gone."""
    stat = read_stat(pid, proc)
    if stat is None:
        return None
    call, target = _call_of(proc / str(pid))
    return KernelWait(pid=pid, state=stat.state, call=call, target=target)


def _call_of(folder: Path) -> tuple[str, str]:
    # 0 0x0 0x7f2c8a3e5010 0x2000 0x0 0x0 0x7ffd4ec44a90 0x7ffd4ec44a38 0x7f2c8b1d2a1d      running      -1 0x7ffd... 0x7f2c...
    try:
        words = (folder / "syscall").read_text().split()
    except OSError:
        return "", ""
    if len(words) < 3 or not words[0].isdecimal():
        return "", ""
    call = _CALLS.get(platform.machine(), {}).get(int(words[0]), f"system call {words[0]}")
    return call, _file_of(folder, int(words[1], 16)) if call in _OF_A_FILE else ""


def _file_of(folder: Path, descriptor: int) -> str:
    try:
        return printable(os.readlink(folder / "fd" / str(descriptor & 0xFFFFFFFF)))  # noqa: PTH115 - sockets are no paths
    except OSError:
        return f"file descriptor {descriptor & 0xFFFFFFFF}"
