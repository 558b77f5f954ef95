"""How a process stands right now, as /proc says it without asking the process: at work, stopped, or stuck in the kernel."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

_LINES_OF_KERNEL_STACK = 8


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One process."""

    state: str
    """``R`` at work, ``S`` asleep, ``D`` asleep where no signal reaches it, ``T`` or ``t`` stopped, ``Z`` ended."""
    waits_in: str = ""
    """The kernel's function that it sleeps in, where that may be read: ``do_signal_stop``."""
    kernel_stack: str = ""
    """Innermost first; root alone may read it."""
    parent: int = 0
    """The process that started it, while that lives: a number that somebody else got later has another."""

    @property
    def is_stopped(self) -> bool:
        return self.state in ("T", "t")

    @property
    def is_stuck(self) -> bool:
        return self.state == "D"


def standing(pid: int, proc: Path = Path("/proc")) -> Standing | None:
    """Return how a process stands; None: it is gone, or has ended and nobody has asked after it."""
    folder = proc / str(pid)
    try:
        stat = (folder / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    state, parent = state_and_parent(stat)
    if state in ("Z", "X"):
        return None
    kernel = ""
    with contextlib.suppress(OSError):
        kernel = "\n".join((folder / "stack").read_text().splitlines()[:_LINES_OF_KERNEL_STACK])
    waits_in = ""
    with contextlib.suppress(OSError):
        waits_in = (folder / "wchan").read_text().strip("0\n ")
    return Standing(state=state, waits_in=waits_in, kernel_stack=kernel, parent=parent)


def state_and_parent(stat: str) -> tuple[str, int]:
    """Return the state and the parent of ``/proc/PID/stat``; the name before them may hold blanks and brackets."""
    # 4711 (python (x)) T 1 ...
    state, parent = [*stat.rpartition(")")[2].split(), "?", "0"][:2]
    return state, int(parent) if parent.isdecimal() else 0


def names(pid: int, folder: Path, proc: Path = Path("/proc")) -> bool:
    """Return whether a process was started with a folder's path among its arguments."""
    try:
        arguments = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return bytes(folder) in arguments
