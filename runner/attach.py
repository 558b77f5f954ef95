"""Lets a profiler of the same user look at this process where the kernel would admit only its parent.

With ``kernel.yama.ptrace_scope`` 1 (Ubuntu's default, and so most rented machines') the sampler, which is no ancestor of
the trainer, may not read its stacks. The permission is kept for each process and not inherited: loader workers ask too.
"""

from __future__ import annotations

import ctypes

PR_SET_PTRACER = 0x59616D61
ANY = ctypes.c_ulong(-1)


def allow_attach() -> bool:
    """Admit processes of the same user; return whether the kernel knew the request (it has Yama)."""
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY, 0, 0, 0) == 0)
    except (OSError, AttributeError):  # no C library to call
        return False
