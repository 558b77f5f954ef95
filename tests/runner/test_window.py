"""Sums over spans of time: what is counted, what is not, and that they stay bounded."""

from __future__ import annotations

import pytest

from runner.events import RunEvent
from runner.window import MAX_PLACES
from runner.windows import BUCKETS, Windows


def add(windows: Windows, kind: str, t: float, source: str = "trainer-0", **data: object) -> None:
    windows.add(RunEvent(seq=0, t=t, source=source, kind=kind, step=1, data=data))


def test_what_was_seen_before_the_first_step_is_loading_and_not_counted() -> None:
    windows = Windows()
    stacks = {"looks": 50, "frames": [{"function": "f", "file": "a.py", "line": 1, "process": "trainer"}]}
    add(windows, "sample-stacks", 1.0, "sampler", phases={"other": 1.0}, **stacks)
    add(windows, "step", 10.0, seconds=1.0, split={"data": 1.0})
    add(windows, "sample-stacks", 11.0, "sampler", phases={"data": 1.0}, **stacks)
    assert windows.whole.phases == {"data": 50.0}
    assert windows.recent().phases == {"data": 50.0}


def test_the_pause_between_two_starts_is_no_time_of_the_run() -> None:
    windows = Windows()
    add(windows, "run-started", 0.0)
    add(windows, "step", 1.0, seconds=1.0)
    add(windows, "run-started", 5000.0)
    add(windows, "step", 5001.0, seconds=1.0)
    assert windows.whole.span_s == pytest.approx(2.0)


def test_a_callback_and_a_log_of_one_training_are_not_counted_twice() -> None:
    windows = Windows()
    for second in range(1, 11):
        add(windows, "step", second, "trainer-0", seconds=1.0)
        add(windows, "step", second + 0.1, "log", seconds=1.0)
        add(windows, "step", second + 0.2, "trainer-1", seconds=1.0)
    assert windows.whole.steps == 10


def test_a_save_in_the_background_counts_no_longer_than_it_held_up() -> None:
    windows = Windows()
    add(windows, "step", 1.0, seconds=1.0)
    add(windows, "checkpoint", 1.5, seconds=30.0)
    assert windows.whole.saving_s == pytest.approx(0.5)


def test_a_week_stays_bounded() -> None:
    windows = Windows()
    add(windows, "step", 0.0)
    for second in range(0, 50_000, 5):
        frame = {"function": f"f{second}", "file": "a.py", "line": 1, "process": "trainer", "self_share": 1.0}
        place = {"phase": "data", "function": f"f{second}", "file": "a.py", "line": 1, "share": 1.0}
        add(windows, "sample-stacks", second, "sampler", looks=50, frames=[frame], places=[place])
    assert len(windows._buckets) == BUCKETS
    assert len(windows.whole.places) <= MAX_PLACES
    assert len(windows.whole.top) <= MAX_PLACES
