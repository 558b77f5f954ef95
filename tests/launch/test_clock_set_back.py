"""A clock that is set back in the midst of a run (a fresh machine's first NTP answer) does not change how long it has run."""

from __future__ import annotations

import pytest

from runner.events import RunEvent
from runner.state import RunState

BEGAN, STEPS, JUMPS_AT = 1_000_000.0, 120, 60


def told(set_back_s: float) -> RunState:
    """A step a second for two minutes, a sample half a second after each; at the 60th step the clock is set back."""
    state = RunState()
    state.add(RunEvent(seq=0, t=BEGAN, source="trainer-0", kind="run-started", data={"device": "cpu"}))
    for second in range(1, STEPS):
        clock = BEGAN + second - (set_back_s if second >= JUMPS_AT else 0.0)
        # the first word after the jump is the sampler's
        sample = RunEvent(seq=second, t=clock - 0.5, source="sampler", kind="sample-host", data={})
        step = RunEvent(seq=second, t=clock, source="trainer-0", kind="step", step=second, data={"loss": 1.0})
        state.add(sample)
        state.add(step)
    return state


@pytest.mark.parametrize("set_back_s", [0.0, 5.0, 3600.0, 86_400.0])
def test_the_time_that_has_passed_stays_what_it_was(set_back_s: float) -> None:
    state = told(set_back_s)
    assert state.first_t is not None and state.last_t is not None
    assert state.last_t - state.first_t == pytest.approx(STEPS - 1, abs=1.5)


def test_a_sample_of_before_that_is_read_late_changes_nothing() -> None:
    state = told(3600.0)
    state.add(RunEvent(seq=0, t=BEGAN + 59, source="sampler", kind="sample-host", data={}))
    assert state.last_t == BEGAN + STEPS - 1 - 3600.0


def test_a_run_that_goes_on_is_running_and_one_that_is_silent_is_stalled() -> None:
    state = told(3600.0)
    now = BEGAN + STEPS - 3600.0
    assert state.status_at(now) == "running"
    assert state.status_at(now + 90) == "stalled"
