"""What the screen is handed: a copy that nothing changes afterwards, in bounded size."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from doctor.tui.view import view_of
from doctor.tui.view_log import LOG_LIMIT
from doctor.tui.widgets.curves import curve_rows
from doctor.tui.widgets.log_panel import clock, log_rows
from runner.events import RunEvent
from runner.state import RunState, fold
from tests.tui.recorded import RunBuilder


def steps(count: int) -> list[RunEvent]:
    return [
        RunEvent(seq=n, t=float(n), source="trainer-0", kind="step", step=n, data={"loss": 1.0 / (n + 1)})
        for n in range(count)
    ]


def test_a_view_does_not_change_when_the_run_goes_on() -> None:
    state = fold(steps(10))
    view = view_of(state, "r", "running", now=10.0)
    fold(steps(20)[10:], state)
    assert view.step == 9
    assert len(view.loss.values) == len(view.loss.steps) == len(view.loss_smoothed.values) == 10


@pytest.mark.no_cover
def test_a_long_run_is_thinned_and_keeps_its_ends() -> None:
    view = view_of(fold(steps(100_000)), "r", "running", now=1e6)
    assert len(view.loss.values) <= 2001
    assert (view.loss.steps[0], view.loss.steps[-1]) == (0, 99_999)
    assert len(curve_rows(view, 100, 30)) == 30


def test_the_log_keeps_its_newest_entries_with_the_start_before_and_the_end_after_them() -> None:
    state = RunState()
    state.add(RunEvent(seq=0, t=0.0, source="trainer-0", kind="run-started", data={"model": "m"}))
    for n in range(LOG_LIMIT * 2):
        data = {"level": "info", "text": {"msgid": "note {n}", "params": {"n": n}}}
        state.add(RunEvent(seq=n, t=float(n), source="trainer-0", kind="note", data=data))
    state.add(RunEvent(seq=0, t=1e4, source="trainer-0", kind="run-finished", data={"outcome": "completed"}))
    rows = [row.plain for row in log_rows(view_of(state, "r", "completed", 1e4), 80)]
    assert len(rows) == LOG_LIMIT
    assert rows[-2].endswith(f"note {LOG_LIMIT * 2 - 1}")
    assert "completed" in rows[-1]


def test_an_evaluation_written_in_the_past_of_another_clock_stays_readable() -> None:
    state = fold([RunEvent(seq=0, t=100.0, source="trainer-0", kind="run-started", data={"x": 1})])
    state.add(RunEvent(seq=1, t=50.0, source="trainer-0", kind="evaluation", step=1, data={"accuracy": 0.5}))
    view = view_of(state, "r", "running", now=20.0)
    assert view.elapsed_s == 0.0
    assert view.silent_s == 0.0
    assert any("accuracy 0.5" in row.plain for row in log_rows(view, 80))


def test_a_finished_run_counts_its_own_time_not_ours(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "r").start().steps(5).finish()
    from runner.events import EventFollower

    state = fold(EventFollower(run.run.events).read_new())
    assert view_of(state, "r", "completed", now=time.time() + 1e9).elapsed_s == 5.0


def test_times_count_from_the_start_in_hours_when_there_are_any() -> None:
    assert [clock(None), clock(0), clock(65.4), clock(7205)] == ["", "+00:00", "+01:05", "+2:00:05"]
