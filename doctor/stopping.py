"""How a supervised command is asked to stop: the signal that came, then SIGTERM, then SIGKILL, each with its grace."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from doctor.probes.process_tree import children_of, is_alive, read_stat

GRACE_S = {signal.SIGINT: 60.0, signal.SIGTERM: 30.0}
"""So long after each signal the next one follows by itself; a second Ctrl-C sends it at once."""
LADDER = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
HELD_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Kept from a supervisor until it can answer them: it is started with them blocked."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})


@dataclass
class StopLadder:
    """Requests to stop, as a signal handler counts them, and how far up we are."""

    requests: list[signal.Signals] = field(default_factory=list)
    _answered: int = 0
    _rung: int = -1
    _sent_at: float = 0.0

    @property
    def asked(self) -> bool:
        return bool(self.requests)

    def ask(self, number: int) -> None:
        self.requests.append(signal.Signals(number))

    def new_attempt(self) -> None:
        self._rung = -1

    def due(self, now: float) -> signal.Signals | None:
        """Return the signal that is to be sent now; None: wait."""
        if self._rung >= 0 and self._rung < len(LADDER) - 1:
            waited = now - self._sent_at >= GRACE_S[LADDER[self._rung]]
        else:
            waited = False
        if self._answered == len(self.requests) and not waited:
            return None
        first = self.requests[self._answered] if self._answered < len(self.requests) else signal.SIGINT
        lowest = LADDER.index(first) if first in LADDER else 0
        self._rung = min(len(LADDER) - 1, max(self._rung + 1, lowest))
        self._answered, self._sent_at = len(self.requests), now
        return LADDER[self._rung]


def send(root: int, number: signal.Signals) -> None:
    """Signal a command: a program itself, and below a shell what it runs; SIGKILL its whole process group.

    A program's own children (loader workers, ranks) are left to it: killed first, they take the saving with them.
    """
    if number == signal.SIGKILL:
        with suppress(ProcessLookupError):
            os.killpg(root, number)
        return
    for pid, start_ticks in list(_programs(root)):
        if is_alive(pid, start_ticks):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _programs(pid: int) -> Iterator[tuple[int, int]]:
    stat = read_stat(pid)
    if stat is None:
        return
    if _name(pid) in SHELLS:
        for child in children_of(pid):
            yield from _programs(child)
    yield pid, stat.start_ticks


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
