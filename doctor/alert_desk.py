"""Which alerts are told, and when: what is new at a look, not too often, and the end always. Pure but for the clock handed in."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from doctor.alert_words import Message, end_of, hung, message_of, stalled, with_held_back
from runner.alert_settings import AlertsSection
from runner.state import RunState
from runner.verdict import Verdict, verdict_of

SAME_KIND_EVERY_S = 600.0
"""An alert that comes and goes is one message in ten minutes."""
IN_AN_HOUR = 20
"""Robots of chats are shut out when they talk too much."""


class AlertDesk:
    """Looks at a run's state again and again and says what is to be told of it."""

    def __init__(
        self,
        settings: AlertsSection,
        run: str,
        hidden: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        from_start: bool = False,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """``from_start``: the run has just begun, so that an end at the first look is news too."""
        self._settings, self._run, self._hidden, self._clock = settings, run, hidden, clock
        self._open: set[tuple[str, float]] = set()
        """Kind and since when: the alerts that were on at the last look."""
        self._is_stalled = self._is_hung = False
        self._wall_clock = wall_clock
        self._told_at: dict[str, float] = {}
        self._hour: deque[float] = deque()
        self._held_back = 0
        self._was_over: bool | None = False if from_start else None

    def look(self, state: RunState, status: str, is_over: bool) -> list[Message]:
        """Return the messages that are due. The end of a run is told once, and not of one that was over at the first look.

        A run is at its end when it says so: what a supervisor does then (a shutdown) comes after the message.
        """
        is_over = is_over or bool(state.finished)
        was_over, self._was_over = self._was_over, is_over
        if is_over and was_over is None:
            return []
        new = [message for message in self._new(state, status) if self._settings.wants(message.kind)]
        due = [message for message in new if self._is_due(message)]
        if is_over and not was_over:
            end = end_of(state, status, self._run, self._hidden)
            due += [end] if self._settings.wants(end.kind) else []
        if due and self._held_back:
            due[-1], self._held_back = with_held_back(due[-1], self._held_back), 0
        return due

    def _new(self, state: RunState, status: str) -> Iterator[Message]:
        alerts = {(alert.kind, alert.since): alert for alert in state.alerts.open()}
        for key in alerts.keys() - self._open:
            yield message_of(alerts[key], self._run, self._hidden)
        self._open = set(alerts)
        was_stalled, self._is_stalled = self._is_stalled, status == "stalled"
        if self._is_stalled and not was_stalled:
            yield stalled(self._run, self._hidden)
        was_hung, found = self._is_hung, self._hung(state, status)
        self._is_hung = found is not None
        if found is not None and not was_hung:
            yield hung(found, self._run, self._hidden)

    def _hung(self, state: RunState, status: str) -> Verdict | None:
        """Return the verdict where it is that the run hangs. A run that tells its steps cannot: it is not asked."""
        if status != "stalled" and (status != "running" or state.last):
            return None
        verdict = verdict_of(state, status, self._wall_clock())
        return verdict if verdict.kind == "hung" else None

    def _is_due(self, message: Message) -> bool:
        now = self._clock()
        while self._hour and now - self._hour[0] >= 3600.0:
            self._hour.popleft()
        too_soon = now - self._told_at.get(message.kind, -1e12) < SAME_KIND_EVERY_S
        if too_soon or len(self._hour) >= IN_AN_HOUR:
            self._held_back += 1
            return False
        self._told_at[message.kind] = now
        self._hour.append(now)
        return True
