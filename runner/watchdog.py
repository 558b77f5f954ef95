"""Has this process write where its threads stand once a step takes far longer than any before.

The writing is done by faulthandler's own thread in C, which needs neither the interpreter nor its lock: a lock that is never
given back, a collective that waits, a read from a dead disk are all told. Nothing is judged and nothing is ended here; a dump
of a long compilation harms nobody. Whether the run hangs is for whoever sees it from outside (:mod:`runner.verdict`).
"""

from __future__ import annotations

import contextlib
import faulthandler
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

FIRST_S = 300.0
"""Before the first step is done: kernels are compiled, caches filled, workers started."""
LEAST_S = 75.0
TIMES = 5.0
"""So many times the longest step so far."""
REARM_EVERY_S = 5.0
"""Arming starts a thread in C: not for every step of a few milliseconds."""


def dump_name(rank: int) -> str:
    """Return the name of the file in ``stacks/`` that a rank's own dumps go to."""
    return f"standing-rank-{rank}.txt"


class Watchdog:
    """One for a process. :meth:`beat` after every step and every batch of an evaluation."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._file: IO[str] | None = None
        self._beat_at = self._armed_at = clock()
        self._longest_s: float | None = None
        """None: nothing has been done yet, and how long the first step takes says nothing of the next ones."""

    @property
    def limit_s(self) -> float:
        return FIRST_S if self._longest_s is None else max(LEAST_S, TIMES * self._longest_s)

    def start(self) -> None:
        """Arm for the first time. A folder that cannot be written is said in the log, and the run goes on without."""
        try:
            self._path.parent.mkdir(exist_ok=True)
            self._file = open(self._path, "a")  # noqa: SIM115 - open as long as the process trains
        except OSError as error:
            sys.stderr.write(f"{self._path}: {error}\n")
            return
        self._beat_at = self._clock()
        self._arm()

    def beat(self) -> None:
        """Something has been done just now."""
        now = self._clock()
        took_s, self._beat_at = now - self._beat_at, now
        before = self.limit_s
        self._longest_s = 0.0 if self._longest_s is None else max(self._longest_s, took_s)
        if self.limit_s != before or now - self._armed_at >= REARM_EVERY_S:
            self._arm()

    def close(self) -> None:
        """Disarm; a file that nothing was written to goes."""
        if self._file is None:
            return
        faulthandler.cancel_dump_traceback_later()
        self._file.close()
        self._file = None
        with contextlib.suppress(OSError):  # a disk that is gone meanwhile is somebody else's news
            if not self._path.stat().st_size:
                self._path.unlink()

    def _arm(self) -> None:
        if self._file is not None:
            self._armed_at = self._clock()
            faulthandler.dump_traceback_later(self.limit_s, repeat=True, file=self._file)
