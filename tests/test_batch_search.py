"""The batch finder: doubled, then halved, with its margin, whatever goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doctor.batch_search import MOST, find_largest
from doctor.measuring import Measured
from doctor.memory_troubles import OutOfTime

MB = 1 << 20
LIMIT = 1000 * MB


def device(per_sample: int, fixed: int = 100, refuses_at: int = 1000) -> Callable[[int], Measured]:
    """A device on which a sample takes ``per_sample`` MB, and that says no beyond ``refuses_at`` MB."""

    def measure(batch: int) -> Measured:
        held = (fixed + per_sample * batch) * MB
        if held > refuses_at * MB:
            return Measured(batch=batch, fits=False, why="out of memory")
        return Measured(batch=batch, fits=True, peak_bytes=held, process_bytes=held)

    return measure


@pytest.mark.parametrize("start", [1, 3, 50, 4000])
@pytest.mark.parametrize(
    ("per_sample", "largest"),
    [
        pytest.param(100, 8, id="a few samples"),
        pytest.param(900, 0, id="not even one"),
        pytest.param(50, 16, id="just one more than a power of two would"),
        pytest.param(820, 1, id="one"),
    ],
)
def test_the_largest_that_leaves_the_margin_is_found_from_anywhere(per_sample: int, largest: int, start: int) -> None:  # fmt: skip
    found = find_largest(device(per_sample), lambda: LIMIT, start)
    assert found.complete
    assert found.largest == largest


def test_above_sixteen_the_answer_is_a_round_number_and_within_a_sixteenth() -> None:
    found = find_largest(device(2), lambda: LIMIT)  # 410 leave the margin
    assert 410 * 15 / 16 <= found.largest <= 410
    assert found.largest % 8 == 0
    assert len(found.tried) <= 16


def test_a_batch_that_runs_but_leaves_no_margin_does_not_count() -> None:
    found = find_largest(device(100), lambda: LIMIT)
    assert {one.batch: one.fits for one in found.tried}[9] is True
    assert found.largest == 8


def test_without_a_limit_of_ours_the_device_itself_says_no() -> None:
    assert find_largest(device(100), lambda: 0).largest == 9


def test_no_batch_is_tried_twice() -> None:
    tried = [one.batch for one in find_largest(device(7), lambda: LIMIT, 13).tried]
    assert len(tried) == len(set(tried))


def test_time_that_runs_out_leaves_what_was_found() -> None:
    measure = device(10)

    def slow(batch: int) -> Measured:
        if batch > 20:
            raise OutOfTime
        return measure(batch)

    found = find_largest(slow, lambda: LIMIT)
    assert (found.largest, found.complete) == (16, False)


def test_a_device_that_takes_everything_ends_the_search() -> None:
    found = find_largest(device(0), lambda: LIMIT)
    assert (found.largest, found.most) == (MOST, True)


def test_an_interrupted_search_gives_what_was_found_and_says_so() -> None:
    asked: list[int] = []

    def measure(batch: int) -> Measured:
        if len(asked) == 3:
            raise KeyboardInterrupt
        asked.append(batch)
        return Measured(batch=batch, fits=True)

    found = find_largest(measure, lambda: 0)
    assert (found.largest, found.complete, found.interrupted) == (4, False, True)


def test_an_interrupt_before_anything_was_tried_is_an_interrupt() -> None:
    def measure(batch: int) -> Measured:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_largest(measure, lambda: 0)
