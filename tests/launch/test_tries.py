"""How often a command is started again: as asked, while it comes further; not for ever at the same place."""

from __future__ import annotations

import pytest

from doctor.tries import ALIKE_ENDS, LONGEST_WAIT_S, Place, Tries


def ends(limit: int, places: list[Place]) -> tuple[int, str]:
    """Return how many starts there were, and why no more."""
    tries = Tries(limit)
    for started, place in enumerate(places, 1):
        why = tries.take(place)
        if why is not None:
            return started, why.msgid
        if tries.is_over:
            return started, "used up"
    return len(places), "goes on"


def place(step: int = 0, checkpoint: int = 0, error: str = "ValueError: bad row") -> Place:
    return Place(step, checkpoint, error)


def test_a_crash_at_the_same_place_ends_after_three() -> None:
    started, why = ends(100, [place(50)] * 100)
    assert started == ALIKE_ENDS and why.startswith("Ended {count} times in a row")


def test_numbers_and_addresses_do_not_make_an_error_another() -> None:
    errors = [f"RuntimeError: at 0x7f{n}a pid {n}" for n in range(9)]
    assert ends(100, [place(error=error) for error in errors])[0] == ALIKE_ENDS


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([place(50 * n) for n in range(1, 7)], id="steps"),
        pytest.param([place(50, 10 * n) for n in range(1, 7)], id="checkpoints"),
        pytest.param([place(error=f"{word}Error: x") for word in "ABCDEF"], id="other errors"),
    ],
)
def test_what_comes_further_or_fails_otherwise_is_tried_as_often_as_asked(places: list[Place]) -> None:
    assert ends(5, places) == (6, "used up")


def test_beginning_anew_each_time_is_no_step_further() -> None:
    """From scratch to step 50 and again to step 50: the first time was as far."""
    assert ends(100, [place(50), place(20), place(50)])[0] == 3


def test_no_retry_is_no_retry() -> None:
    assert ends(0, [place()]) == (1, "used up")


def test_the_wait_grows_while_nothing_changes_and_has_an_end() -> None:
    tries, waits = Tries(10**6), []
    for _ in range(2):
        tries.take(place())
        waits.append(tries.wait_s)
    assert waits == [5.0, 10.0]
    tries._alike = 50
    assert tries.wait_s == LONGEST_WAIT_S
