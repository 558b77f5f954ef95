"""A curve is what the weights that stand now went through."""

from __future__ import annotations

import math

import pytest

from runner.curve import Curve
from runner.events import RunEvent
from runner.state import fold


def drawn(points: list[tuple[float, float]], limit: int = 2000) -> Curve:
    curve = Curve(limit)
    for step, value in points:
        curve.add(step, value)
    return curve


def test_a_training_that_went_back_to_a_checkpoint_goes_on_from_there() -> None:
    """Fell at step 27, resumed from 20: the losses of 21 to 27 are of weights that are no more."""
    curve = drawn([(10, 1.0), (20, 0.9), (25, 0.1), (27, 0.05), (21, 0.8), (30, 0.7)])
    assert (curve.steps, curve.values) == ([10, 20, 21, 30], [1.0, 0.9, 0.8, 0.7])


def test_two_points_of_one_step_both_stand() -> None:
    assert drawn([(10, 1.0), (10, 2.0)]).values == [1.0, 2.0]


def test_a_run_that_was_started_again_has_one_line_in_every_curve() -> None:
    kinds = [("run-started", 0, {}), *(("step", n, {"loss": 1 / n, "lr": 0.1}) for n in (1, 2, 3)), ("evaluation", 3, {"accuracy": 0.1})]  # fmt: skip
    again = [("run-started", 0, {"resumed_from_step": 2}), ("step", 3, {"loss": 0.3, "lr": 0.1}), ("evaluation", 4, {"accuracy": 0.5})]  # fmt: skip
    state = fold(
        RunEvent(seq=n, t=float(n), source="trainer-0", kind=kind, step=step, data=data)  # type: ignore[arg-type] # a table of mixed rows
        for n, (kind, step, data) in enumerate([*kinds, *again])
    )
    assert state.loss.steps == [1, 2, 3, 3] and state.metrics["accuracy"].steps == [3, 4]


@pytest.mark.parametrize("limit", [10, 100])
def test_a_thinned_curve_keeps_its_ends_in_order_also_after_going_back(limit: int) -> None:
    forward = [(float(n), math.sin(n)) for n in range(1000)]
    curve = drawn([*forward, *((float(n), 5.0) for n in range(500, 700))], limit)
    assert curve.steps == sorted(curve.steps) and len(curve) <= limit
    assert curve.steps[0] == 0.0 and (curve.steps[-1], curve.values[-1]) == (699.0, 5.0)
