"""How often stacks are looked at: within what the run can bear, and never too seldom for a verdict."""

from __future__ import annotations

import pytest

from doctor.pace import LEAST_LOOKS, LONGEST_PAUSE_S, LONGEST_TICK_S, MOST_CORES, Pace, starting_rate
from runner.verdict_case import MIN_STACK_LOOKS
from runner.windows import RECENT_S


def test_the_rate_falls_with_the_threads() -> None:
    assert [starting_rate(threads) for threads in (4, 300, 2000)] == [10, 5, 2]


def spent(pace: Pace) -> float:
    """Return the share of one core that windows cost at this pace: 2 ms a look, 40 ms a start."""
    cpu_s = 0.04 + 0.002 * pace.rate * pace.window_s
    for _ in range(20):
        pace.learn_window(cpu_s, pace.window_s + 0.3)
        cpu_s = 0.04 + 0.002 * pace.rate * pace.window_s
    return cpu_s / (pace.window_s + 0.3 + pace.pause_s)


@pytest.mark.parametrize("cores", [0.38, 1.0, 4.0])
def test_where_cores_are_fought_for_stacks_take_less_than_a_hundredth_of_what_the_run_gets(
    cores: float,
) -> None:
    pace = Pace(rate=10, run_cores=cores)
    assert spent(pace) <= 0.01 * cores


def test_a_run_of_half_a_minute_is_looked_at_twice_before_the_first_pause() -> None:
    pace = Pace(rate=10, run_cores=0.2)
    pauses = []
    for _ in range(3):
        pace.learn_window(0.12, 5.3)
        pauses.append(pace.pause_s)
    assert pauses[:2] == [0.0, 0.0]
    assert pauses[2] > 20.0


def test_where_a_core_is_free_more_is_seen() -> None:
    tight, free = Pace(rate=10, run_cores=2.0), Pace(rate=10, run_cores=2.0, is_contended=False)
    assert spent(tight) < spent(free) <= MOST_CORES


@pytest.mark.parametrize("cpu_s", [0.1, 1.0, 30.0])
def test_the_newest_minute_holds_what_a_verdict_takes_whatever_a_window_costs(cpu_s: float) -> None:
    pace = Pace(rate=10, run_cores=0.1)
    for _ in range(20):
        pace.learn_window(cpu_s, pace.window_s)
    assert pace.pause_s <= LONGEST_PAUSE_S
    windows_a_minute = RECENT_S / (pace.window_s + pace.pause_s)
    assert pace.window_s * pace.rate >= LEAST_LOOKS
    assert windows_a_minute * pace.window_s * pace.rate >= MIN_STACK_LOOKS


def test_a_rate_that_fell_rises_again_when_the_run_gets_more() -> None:
    pace = Pace(rate=10, run_cores=0.1)
    for _ in range(5):
        pace.learn_window(1.0, 5)
    assert pace.rate == 2
    for _ in range(100):
        pace.hear_run(800.0)
    for _ in range(20):
        pace.learn_window(0.05, 5)
    assert pace.rate == 10


def test_a_dear_sample_is_taken_less_often() -> None:
    cheap, dear = Pace(run_cores=1.0), Pace(run_cores=1.0)
    for _ in range(30):
        cheap.learn_tick(0.002)
        dear.learn_tick(0.1)
    assert (cheap.tick_s, dear.tick_s) == (1.0, LONGEST_TICK_S)


@pytest.mark.parametrize(
    ("later", "is_contended"),
    [("2000000000 1900000000 20", True), ("2000000000 1010000000 20", False), ("no such file", True), ("1000000000 9000000000 20", True)],
    ids=["waited as long as it ran", "hardly waited", "not told", "did not run"],
)  # fmt: skip
def test_waiting_for_a_core_is_a_fight_for_cores(later: str, is_contended: bool) -> None:
    pace = Pace()
    pace.hear_queue("1000000000 1000000000 10")
    pace.hear_queue(later)
    assert pace.is_contended is is_contended


def test_a_long_run_is_looked_at_less_often_even_where_cores_are_free() -> None:
    pace = Pace(run_cores=64.0, is_contended=False)
    pace.learn_window(0.05, 5)
    assert pace.pause_s == 0.0
    pace.least_pause_s = 25.0
    pace.learn_window(0.05, 5)
    assert pace.pause_s == 25.0
