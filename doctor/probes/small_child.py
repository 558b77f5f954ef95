"""One short question to a program that may be anything: bounded in time and output, and nothing of it stays behind."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ANSWER_LIMIT_BYTES = 1 << 16


def ask(argv: Sequence[str | Path], deadline_s: float) -> str | None:
    """Return what ``argv`` prints within ``deadline_s``; None where it fails, hangs, prints without end or is no program.

    It runs in a session of its own, which is ended with it: a wrapper script's children too.
    """
    import subprocess  # seldom needed, and slow to import

    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    assert process.stdout is not None
    end = time.monotonic() + deadline_s
    try:
        answer = _read(process.stdout.fileno(), end)
        if answer is None:
            return None
        code = process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        with suppress(subprocess.TimeoutExpired):  # in state D: left behind, and its answer not waited for
            process.wait(0.1)
    return os.fsdecode(answer) if code == 0 else None


def _read(fd: int, end: float) -> bytes | None:
    """Return all that comes until the program closes its output; None where that is too late or too much."""
    answer = bytearray()
    while len(answer) <= ANSWER_LIMIT_BYTES:
        ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return None
        piece = os.read(fd, ANSWER_LIMIT_BYTES)
        if not piece:
            return bytes(answer)
        answer += piece
    return None
