"""Starts a program in a session of its own: it outlives the terminal, reads nothing, and writes into a log."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_detached(
    argv: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    lock: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start ``argv`` beyond the terminal's reach and append what it prints to ``log``.

    ``environment`` and ``folder`` are ours where None. ``lock`` is an open file that the program inherits, and
    holds for as long as it lives.

    Raises OSError.
    """
    with open(log, "ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=environment,
            cwd=folder,
            pass_fds=() if lock is None else (lock,),
        )
