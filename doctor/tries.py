"""How often a failed command is started again: as often as asked, but not where it ends at the same place each time. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runner.text import Text, t

ALIKE_ENDS = 3
"""So many ends in a row with the same error and no step further are no accident."""
WAIT_S = 5.0
LONGEST_WAIT_S = 300.0

# at 0x7f3a2b40 | pid 4711 | 2026-11-30 07:00:01
_ACCIDENTAL = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """How far a start came, and how it ended."""

    step: int
    """The highest step told so far, in all starts."""
    checkpoint: int
    """The highest number in the name of a checkpoint of this run."""
    error: str
    """The last error in its output, else its exit status."""


class Tries:
    """Counts the starts of one command."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.attempt = 0
        """Of the start that runs, or comes next: 0 is the first."""
        self._best = (0, 0)
        self._error: str | None = None
        self._alike = 0

    def take(self, place: Place) -> Text | None:
        """Take note of a failed start; return why there is no further one. None: :attr:`attempt` is the next, or they
        are used up (see :attr:`is_over`)."""
        best = (max(place.step, self._best[0]), max(place.checkpoint, self._best[1]))
        error = _ACCIDENTAL.sub("#", place.error)
        self._alike = self._alike + 1 if best == self._best and error == self._error else 1
        self._best, self._error = best, error
        self.attempt += 1
        if self._alike < ALIKE_ENDS or self.is_over:
            return None
        return t("Ended {count} times in a row in the same way and no step further: not started again, it would end so again.",
                 count=self._alike)  # fmt: skip

    @property
    def is_over(self) -> bool:
        return self.attempt > self.limit

    @property
    def wait_s(self) -> float:
        """How long to wait before the next start: longer where the last ones came no further."""
        return float(min(LONGEST_WAIT_S, WAIT_S * 2 ** max(0, self._alike - 1)))
