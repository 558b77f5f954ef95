"""Starts a program in a session of its own: it outlives the terminal, reads nothing, and writes into a log."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path


def start_detached(
    argv: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    lock: int | None = None,
    held: Collection[signal.Signals] = (),
) -> subprocess.Popen[bytes]:
    """Start ``argv`` beyond the terminal's reach and append what it prints to ``log``.

    ``environment`` and ``folder`` are ours where None. ``lock`` is an open file that the program inherits, and
    holds for as long as it lives. ``held`` signals wait for a program of ours until it lets them in
    (``signal.pthread_sigmask``): nothing that comes while it starts is lost, or ends it without a word.

    Raises OSError.
    """
    with open(log, "ab") as output, _blocked(held):
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


@contextlib.contextmanager
def _blocked(signals: Collection[signal.Signals]) -> Iterator[None]:
    """Block signals for a moment: a program started meanwhile inherits that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
