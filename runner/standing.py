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
        state = state_in((folder / "stat").read_text("utf-8", "replace"))
    except OSError:
        return None
    if state in ("Z", "X"):
        return None
    kernel = ""
    with contextlib.suppress(OSError):
        kernel = "\n".join((folder / "stack").read_text().splitlines()[:_LINES_OF_KERNEL_STACK])
    waits_in = ""
    with contextlib.suppress(OSError):
        waits_in = (folder / "wchan").read_text().strip("0\n ")
    return Standing(state=state, waits_in=waits_in, kernel_stack=kernel)


def state_in(stat: str) -> str:
    """Return the state of ``/proc/PID/stat``; the name before it may hold blanks and brackets."""
    # 4711 (python (x)) T 1 ...
    return (stat.rpartition(")")[2].split() or ["?"])[0]
