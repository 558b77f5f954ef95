"""Looks after the ranks of one machine from outside: who is still there when the others gave up, and in what state.

A rank that is stopped, or stuck in the kernel, cannot say so itself. The others leave by the time-out; whoever has not left a
moment later is the one they waited for. It is asked for its stack, and ended if it does not leave.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from runner.rank_record import RankLeft, read_ranks, stack_file
from runner.signals import EXIT_SAVED
from runner.standing import Standing, standing

LOOK_S = 1.0
SETTLE_S = 3.0
"""So long after the first rank left in trouble the others are given to leave by themselves."""
GRACE_S = 15.0
"""So long a rank that was asked to leave may take."""
UNKILLABLE_S = 30.0
"""So long after SIGKILL a process is waited for: one that is stuck in the kernel may stay for ever."""


class Awaited(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that had not left when the others had."""

    rank: int
    pid: int
    standing: Standing


class RankWatch:
    """Called as often as one likes; looks once a second."""

    def __init__(
        self,
        run_path: Path,
        timeout_s: float,
        parent: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        look: Callable[[int], Standing | None] = standing,
        send: Callable[[int, int], None] = os.kill,
    ) -> None:
        """``parent``: who started the ranks; a process with a rank's number and another parent is somebody else's."""
        self.awaited: list[Awaited] = []
        self.gives_up = False
        """A process is still there that nothing ends."""
        self._run, self._timeout_s, self._clock, self._standing, self._send = (
            run_path,
            timeout_s,
            clock,
            look,
            send,
        )
        self._parent = parent
        self._next = clock()
        self._broken_at: float | None = None
        self._ended_at: float | None = None
        self._stopped_since: dict[int, float] = {}

    def look(self) -> None:
        """Look, and do what is due."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + LOOK_S
        left = read_ranks(self._run)
        here = [(one, found) for one in left if one.left_at is None and (found := self._rank(one.pid))]
        if self._broken_at is None:
            if _has_broken(left, {one.rank for one, _ in here}):
                self._broken_at = now
            elif stopped := self._too_long_stopped(here, now):
                self._broken_at = now - SETTLE_S
                self._ask(stopped)
            return
        waited = now - self._broken_at
        if here and waited >= SETTLE_S and not self.awaited:
            self._ask(here)
        elif here and waited >= SETTLE_S + GRACE_S and self._ended_at is None:
            self._ended_at = now
            self._signal([one.pid for one, _ in here], signal.SIGKILL)
        self.gives_up = bool(here) and self._ended_at is not None and now - self._ended_at >= UNKILLABLE_S

    def _rank(self, pid: int) -> Standing | None:
        found = self._standing(pid)
        return found if found is None or self._parent in (None, found.parent) else None

    def _too_long_stopped(
        self, here: Sequence[tuple[RankLeft, Standing]], now: float
    ) -> list[tuple[RankLeft, Standing]]:
        """Return the ranks that were stopped at every look for as long as the others would wait for them.

        On another machine the others have left by then, and nobody would tell this one.
        """
        stopped = {one.pid: (one, found) for one, found in here if found.is_stopped}
        self._stopped_since = {pid: self._stopped_since.get(pid, now) for pid in stopped}
        return [both for pid, both in stopped.items() if now - self._stopped_since[pid] > self._timeout_s]

    def _ask(self, here: Sequence[tuple[RankLeft, Standing]]) -> None:
        """Note how they stand, let those that are stopped go on, and have them write their stacks and leave."""
        self.awaited = [Awaited(rank=one.rank, pid=one.pid, standing=found) for one, found in here]
        for one in self.awaited:
            with contextlib.suppress(OSError), open(stack_file(self._run, one.rank), "a") as file:
                file.write(kernel_words(one.standing))
        pids = [one.pid for one in self.awaited]
        self._signal(pids, signal.SIGTERM)
        self._signal(pids, signal.SIGCONT)

    def _signal(self, pids: Sequence[int], number: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                self._send(pid, number)


def _has_broken(left: Sequence[RankLeft], here: set[int]) -> bool:
    """Return whether a rank left in trouble, or is gone without a word."""
    return any(
        one.code not in (0, EXIT_SAVED) if one.left_at is not None else one.rank not in here for one in left
    )


def kernel_words(found: Standing) -> str:
    """Return what the kernel says of a process, as lines for its stack file."""
    lines = [f"kernel: state {found.state}" + (f", waits in {found.waits_in}" if found.waits_in else "")]
    return "\n".join([*lines, *(f"kernel: {line}" for line in found.kernel_stack.splitlines())]) + "\n"
