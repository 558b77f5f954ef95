"""When a run began and when it was last heard of, by its events. Pure."""

from __future__ import annotations

from runner.events import RunEvent

CLOCK_SET_BACK_S = 2.0
"""Between two words of one trainer: more than this and the clock was set back meanwhile."""


class RunTimes:
    """Seconds since the epoch. Where the clock was set back the beginning moves with it: what has passed has passed."""

    def __init__(self) -> None:
        self.first_t: float | None = None
        self.last_t: float | None = None
        self._set_back_s = 0.0

    def add(self, event: RunEvent, said_t: float | None) -> None:
        """Take an event's time in. ``said_t``: when the trainer spoke before it; None: it has not, in this start."""
        if self.first_t is None or self.last_t is None:
            self.first_t = self.last_t = event.t
            return
        if said_t is None:
            self.first_t = min(self.first_t, event.t)
        elif event.source == "trainer-0" and said_t - event.t > CLOCK_SET_BACK_S:
            self._set_back_s = said_t - event.t
            self.first_t -= self._set_back_s
            self.last_t = event.t
        elif self._set_back_s and event.t - said_t > self._set_back_s / 2:
            return  # another writer's, from before it was set back
        self.last_t = max(self.last_t, event.t)
