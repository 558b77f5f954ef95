"""What happened in a run, in order, as entries of its log."""

from __future__ import annotations

from typing import Any, NamedTuple

from runner.events import RunEvent
from runner.state import RunState

LOG_LIMIT = 500
"""Newest entries of the log that are kept."""


class Entry(NamedTuple):
    """One line of the log: seconds since the run began, a kind, and the event's data."""

    at_s: float | None
    kind: str
    step: int | None
    data: dict[str, Any]


def entries_of(state: RunState) -> tuple[Entry, ...]:
    """Return the newest evaluations, checkpoints and notes by time, the start and the end around them."""
    events = [*state.evaluations[-LOG_LIMIT:], *state.checkpoints[-LOG_LIMIT:], *state.notes[-LOG_LIMIT:]]
    entries = [
        _entry(event, state.first_t) for event in sorted(events, key=lambda event: (event.t, event.seq))
    ]
    if state.started:
        entries.insert(0, Entry(0.0, "run-started", None, state.started))
    if state.finished:
        entries.append(
            Entry(_since(state.last_trainer_t, state.first_t), "run-finished", state.step, state.finished)
        )
    return tuple(entries[-LOG_LIMIT:])


def _entry(event: RunEvent, first_t: float | None) -> Entry:
    return Entry(_since(event.t, first_t), event.kind, event.step, event.data)


def _since(t: float | None, first_t: float | None) -> float | None:
    return None if t is None or first_t is None else max(0.0, t - first_t)
