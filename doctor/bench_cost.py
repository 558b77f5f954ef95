"""What a comparison still costs: how many short runs are to come, and how long they take by those that were made. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

BEFORE = "before"
SLACK_S = 60.0
SLOW = 10
"""A run that takes so many times what one of *before* took, and :data:`SLACK_S` more, is ended."""


class Cost:
    """Hears how long each run took, start and end of its process included."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def took(self, name: str, seconds: float) -> None:
        self._seconds.setdefault(name, []).append(seconds)

    def of(self, name: str) -> float:
        """Return the seconds of one run; of one that was never made, as many as *before* takes. 0: nothing is known."""
        known = self._seconds.get(name) or self._seconds.get(BEFORE)
        return statistics.median(known) if known else 0.0

    def left_s(self, left: Mapping[str, int]) -> float:
        """Return the seconds of so many pairs of each name."""
        return sum(count * self.of(name) for name, count in left.items()) + befores(left) * self.of(BEFORE)

    def limit_s(self, left_s: float, is_slow: bool) -> float:
        """Return how long one run may take where ``left_s`` are left for everything; ``is_slow``: it compiles first."""
        most = left_s + SLACK_S
        known = self.of(BEFORE)
        return most if is_slow or not known else min(most, SLOW * known + SLACK_S)


def befores(left: Mapping[str, int]) -> int:
    """Return how many runs of *before* so many pairs take: two settings share one."""
    return -(-sum(left.values()) // 2)


def runs_of(left: Mapping[str, int]) -> int:
    return sum(left.values()) + befores(left)
