"""This process's own memory on a CPU: how much it holds, the most it held, and a fence it cannot pass.

The fence is threefold: the kernel refuses memory beyond a limit (RLIMIT_DATA), a thread ends the process should it hold
more than that all the same, or should the machine run out, and the kernel is told to end this process before any other.
"""

import ctypes
import os
import resource
import threading
import time
from typing import Any

EXIT_OVER_LIMIT = 9
"""The process ended itself: it held more than it was given, or the machine had next to nothing left."""
LOOK_EVERY_S = 0.05
LEAST_LEFT_BYTES = 256 << 20
"""The machine's available memory below which the thread ends the process, however little that holds itself."""
SLACK = 1.25
"""The thread leaves it to the kernel to say no: it looks for processes on which that had no effect."""


def status_bytes(name: str, pid: Any = "self") -> int:
    """Return a line of a process's /proc/PID/status: VmRSS, VmHWM, VmData. Raises LookupError, OSError."""
    with open("/proc/%s/status" % pid, errors="replace") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    raise LookupError(name)


def available_bytes() -> int:
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) << 10


def give_back() -> None:
    """Have the C library give freed memory back to the kernel, where it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def begin_anew() -> bool:
    """Let the high-water mark start from what is held now; return whether this kernel does that."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return status_bytes("VmHWM") <= status_bytes("VmRSS") + (8 << 20)


def fence(limit_bytes: int, watched: Any = status_bytes) -> None:
    """Leave this process ``limit_bytes`` beyond what it holds now."""
    held = watched("VmRSS")
    ceiling = status_bytes("VmData") + limit_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or ceiling < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
    _be_first_to_go()
    threading.Thread(target=_look, args=(held + int(limit_bytes * SLACK), watched), daemon=True).start()


def _be_first_to_go() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return  # a container that hides it: the other two fences stand


def _look(most_bytes: int, watched: Any) -> None:
    while watched("VmRSS") <= most_bytes and available_bytes() >= LEAST_LEFT_BYTES:
        time.sleep(LOOK_EVERY_S)
    os._exit(EXIT_OVER_LIMIT)
