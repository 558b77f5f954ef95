"""What the writer of a run takes for now: its host's clock may differ from ours, and a network disk shows its words late. Pure."""

from __future__ import annotations

SKEWED_S = 5.0
"""Smaller differences are a slow disk."""
MOST_SKEW_S = 600.0
"""A clock that is further off is no clock; a run of another host that spoke longer ago is silent."""


class WriterClock:
    """Learns from words as they come. Silence is then counted from when they came, by our own clock."""

    def __init__(self, is_here: bool) -> None:
        """``is_here``: the run is written on this host, whose clock is ours."""
        self._is_here = is_here
        self._offset_s = 0.0
        self._newest_t: float | None = None

    def hear(self, newest_t: float | None, now: float) -> None:
        """Take in the newest event's time (seconds since the epoch) at our time ``now``."""
        if self._is_here or newest_t is None or newest_t == self._newest_t:
            return
        self._newest_t = newest_t
        offset_s = newest_t - now
        self._offset_s = offset_s if SKEWED_S < abs(offset_s) <= MOST_SKEW_S else 0.0

    def now(self, now: float) -> float:
        return now + self._offset_s
