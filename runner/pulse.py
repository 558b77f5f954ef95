"""Shows that a process is at work: its watchdog is put off, and a long evaluation tells how far it is.

Without the latter an evaluation of minutes would look from outside like a trainer that hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from runner.journal import Journal
from runner.watchdog import Watchdog

TELL_EVERY_S = 15.0


class Pulse:
    """Of one trainer."""

    def __init__(
        self, watchdog: Watchdog, journal: Journal, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.watchdog, self._journal, self._clock = watchdog, journal, clock
        self._told_at = clock()

    def step_done(self) -> None:
        self.watchdog.beat()
        self._told_at = self._clock()

    def evaluated(self, done: int, total: int) -> None:
        """``done`` of ``total`` batches of an evaluation are answered."""
        self.watchdog.beat()
        now = self._clock()
        if now - self._told_at >= TELL_EVERY_S:
            self._told_at = now
            self._journal.write("evaluating", None, done=done, total=total)
