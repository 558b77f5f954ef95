"""Notices that a trainer has gone quiet, by this machine's own clock, and that it speaks again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.text import Text, t

PATIENCE = 3.0
"""A trainer that was once quiet for G seconds and then went on is not silent before PATIENCE x G."""


class Silence:
    """Watches the size of ``trainer-*.jsonl``; a long evaluation teaches it to wait longer the next time."""

    def __init__(self, events: Path, after_s: float = 60.0) -> None:
        self.events = events
        self.after_s = after_s
        self._size = -1
        self._heard_at: float | None = None
        self._longest_gap_s = 0.0
        self._heard = 0
        self.silent = False

    @property
    def limit_s(self) -> float:
        """So long a silence is noted."""
        return max(self.after_s, PATIENCE * self._longest_gap_s)

    @property
    def is_talking(self) -> bool:
        """Whether it has spoken more than once since somebody listens: it works, and does not merely begin."""
        return self._heard > 1

    def quiet_s(self, now: float) -> float:
        """Return for how long nothing has been heard."""
        return 0.0 if self._heard_at is None else now - self._heard_at

    def look(self, now: float) -> Iterator[tuple[Text, bool]]:
        """Yield ``(what to note, whether a stack dump belongs to it)`` when silence begins or ends."""
        size = self._bytes_written()
        if self._heard_at is None or size != self._size:
            quiet_s = self.quiet_s(now)
            self._longest_gap_s = max(self._longest_gap_s, quiet_s)
            self._heard += self._heard_at is not None
            self._size, self._heard_at = size, now
            if self.silent:
                self.silent = False
                yield t("The trainer goes on after {seconds!d} of silence.", seconds=round(quiet_s)), False
            return
        quiet_s = self.quiet_s(now)
        if not self.silent and quiet_s >= self.limit_s:
            self.silent = True
            yield (
                t(
                    "Nothing from the trainer for {seconds} s; where it stands is kept in stacks/.",
                    seconds=round(quiet_s),
                ),
                True,
            )

    def _bytes_written(self) -> int:
        total = 0
        for path in self.events.glob("trainer-*.jsonl"):
            try:
                total += path.stat().st_size
            except OSError:  # read as "nothing new"; the next look may see it again
                continue
        return total
