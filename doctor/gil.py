"""How much of the time a process's GIL is held, from a window of py-spy that sees its holder alone. Pure.

py-spy makes a fixed number of looks and writes those at which a thread held the GIL: the rest is time in which none did.
Measured: 0.03 CPU-seconds for 40 looks at a small process, as a window of stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doctor.stacks import Stack

EVERY = 6
"""One window in so many; a whole one, since fewer looks than 30 say little."""
FIRST = 2
MIN_LOOKS = 20


def is_due(window: int) -> bool:
    """Return whether the window of this number (from 0) looks at the GIL alone."""
    return window % EVERY == FIRST


def gil_shares(pid: int, stacks: Sequence[Stack], errors: int, seconds: int, rate: int) -> dict[str, Any]:
    """Of ``pid``, its children left out: return ``gil_share`` and ``gil_main_share`` (0 to 1, of ``gil_looks``); empty: too few looks succeeded.

    The last of ``seconds * rate`` looks falls on the window's end and is not made.
    """
    own = [stack for stack in stacks if stack.pid == pid]
    held = sum(stack.count for stack in own)
    looks = max(held, seconds * rate - 1 - errors)
    if looks < MIN_LOOKS or errors > looks:
        return {}
    main = sum(stack.count for stack in own if stack.is_main or stack.thread == "MainThread")
    return {"gil_share": round(held / looks, 4), "gil_main_share": round(main / looks, 4), "gil_looks": looks}
