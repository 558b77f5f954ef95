"""The standard streams as they may come: closed, full, in another encoding than UTF-8."""

from __future__ import annotations

import errno
import os
import sys

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ESTALE, errno.EROFS)
"""What a file that stdout was sent to may say: full, over its quota or ``ulimit -f``, or gone with its server."""


def open_closed() -> None:
    """A stream that is closed (``>&-``, some cron daemons) becomes /dev/null, so that no file takes its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_RDONLY if mode == "r" else os.O_WRONLY
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - open as long as the program runs


def survive_bad_bytes() -> None:
    """A terminal that is not UTF-8 (LANG=C) must not turn a Chinese sentence into a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="replace" if (stream.encoding or "").lower() == "utf-8" else "backslashreplace"
            )


def send_nowhere() -> None:
    """Have stdout take anything: Python would complain again while it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
