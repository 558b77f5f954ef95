"""How far the clock is surely behind, told without asking another machine: it cannot be earlier than our own tables."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from doctor.tables import load


def behind_s(now_s: float, made: str | None = None) -> float | None:
    """Return seconds (negative) by which ``now_s`` (Unix time) lies before the day the tables were made; None: it does not.

    That a clock runs ahead, or a few minutes off, only another machine's clock could tell, and a check asks none.
    """
    day = date.fromisoformat(made or str(load("torch_builds")["compiled"]))
    earliest = datetime.combine(day, time(), timezone.utc) - timedelta(
        days=1
    )  # it was already today further east
    late = now_s - earliest.timestamp()
    return late if late < 0 else None
