"""Being told when whoever started this process has ended, however it ended: the kernel tells it."""

from __future__ import annotations

import ctypes
import signal

PR_SET_PDEATHSIG = 1
"""``man 2 prctl``: the signal that a process gets when the one that started it ends."""


def get_at_parents_end(number: signal.Signals) -> None:
    """Have this process get a signal then. A parent that has ended already is for the caller to look for.

    Raises:
        AttributeError: a C library without it.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
