"""How far the clock is surely behind, told without asking another machine: it cannot be earlier than our own tables.

On WSL 2 the virtual machine's clock stands still while Windows sleeps, and its hardware clock, which Windows keeps, does
not: there the two are compared. Elsewhere a hardware clock is too often wrong, or in local time, to judge by.
"""

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


def behind_windows_s(now_s: float, hardware_clock: str) -> float | None:
    """Return seconds (negative) by which ``now_s`` lies before WSL's hardware clock (/sys/class/rtc/rtc0/since_epoch).

    None: it does not, or by whole quarters of an hour, as a hardware clock in local time would show.
    """
    late = now_s - int(hardware_clock)
    in_local_time = abs(-late / 900 - round(-late / 900)) * 900 < 5
    return late if late < -60 and not (in_local_time and late > -15 * 3600) else None
