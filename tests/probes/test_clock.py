"""A clock that stands before our own tables is behind; one that does not is not called right."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from doctor.model import Host
from doctor.probes.clock import behind_s, behind_windows_s
from tests.checks.judged import said, the


@pytest.mark.parametrize(
    ("now", "behind_days"),
    [
        ("2026-12-24", None),
        ("2026-11-30", None),
        ("2026-11-29", None),
        ("2026-11-26", 3),
        ("2000-01-01", 9829),
        ("2031-01-01", None),
    ],
)
def test_how_far_the_clock_is_surely_behind(now: str, behind_days: int | None) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=timezone.utc).timestamp()
    late = behind_s(at, "2026-11-30")
    assert (None if late is None else round(-late / 86400)) == behind_days


def test_a_clock_that_is_days_behind_is_said_in_days() -> None:
    assert str(the("clock-wrong", host=Host(clock_skew_s=-9829 * 86400.0)).title).startswith(
        "the clock is at least 9829 days behind"
    )
    assert str(the("clock-wrong", host=Host(clock_skew_s=-3600.0)).title).startswith(
        "the clock is 60 minutes off"
    )
    assert "clock-wrong" not in said(host=Host(clock_skew_s=-200.0))
    assert "clock-wrong" not in said(host=Host())


@pytest.mark.parametrize(
    ("ahead_s", "behind"),
    [
        (0, False),
        (3, False),
        (-500, False),
        (3723, True),
        (8 * 3600, False),
        (20 * 3600 + 77, True),
        (3 * 86400, True),
    ],
)
def test_wsl_clock_that_stood_still_while_windows_slept(ahead_s: int, behind: bool) -> None:
    late = behind_windows_s(1_800_000_000.0, f"{1_800_000_000 + ahead_s}\n")
    assert (late is not None) == behind
    assert late is None or late == -ahead_s


def test_on_wsl_the_command_that_sets_it_is_told() -> None:
    finding = the("clock-wrong", host=Host(clock_skew_s=-7231.0, wsl=True))
    assert str(finding.advice).startswith("sudo hwclock -s")
