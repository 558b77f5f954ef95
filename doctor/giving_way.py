"""Lets everything else on the machine go first: what a sampler does can wait, what it looks at cannot."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform

NICENESS = 10
"""A ninth of an ordinary process's weight where cores are fought for, and all of a core where one is free."""
# From the kernel's syscall tables and include/uapi/linux/ioprio.h.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_THIS_PROCESS = 1
_IDLE = 3 << 13


def give_way() -> None:
    """Take a lower place for CPU and disk, for this process and what it starts. What is not permitted is left as it is."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        with contextlib.suppress(OSError, AttributeError):  # no C library to call
            ctypes.CDLL(None).syscall(number, _THIS_PROCESS, 0, _IDLE)
