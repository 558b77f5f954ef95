"""Two runs: what differs by more than chance is called so, what does not is not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from doctor.command_words import words_by_name
from doctor.meaningful import Weighed, share_chance, weigh, weigh_curves
from doctor.render.weighed_text import weighed_lines
from runner.events import RunEvent
from runner.state import Curve, RunState, fold


def curve(end: float, noise: float, seed: int, steps: int = 400, every: int = 5) -> Curve:
    """A loss that falls from 2 to ``end``, with noise."""
    draw, found = random.Random(seed), Curve()
    for step in range(every, steps + 1, every):
        found.add(step, end + (2.0 - end) * 0.98**step + draw.gauss(0.0, noise))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_clear_difference_is_seen_in_every_draw(seed: int) -> None:
    found = weigh_curves("loss", curve(0.5, 0.05, seed), curve(0.3, 0.05, seed + 1000))
    assert found is not None and found.is_more_than_chance and found.better == "b"
    assert found.difference == pytest.approx(-0.2, abs=0.06)


def test_equal_trainings_with_other_noise_are_seldom_called_different() -> None:
    """At 95 % one in twenty is; of 200 pairs not more than 24."""
    calls = [weigh_curves("loss", curve(0.5, 0.1, n), curve(0.5, 0.1, n + 5000)) for n in range(200)]
    assert sum(bool(found and found.is_more_than_chance) for found in calls) <= 24


def test_only_the_steps_that_both_made_are_compared() -> None:
    """The longer one is further at its end; at the same steps they are alike."""
    found = weigh_curves("loss", curve(0.5, 0.1, 1, steps=200), curve(0.5, 0.1, 2, steps=2000))
    assert found is not None and found.last_step == 200 and not found.is_more_than_chance


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(curve(0.5, 0.1, 1), curve(0.5, 0.1, 1), id="the same run"),
        pytest.param(curve(0.5, 0.1, 1, steps=20), curve(0.5, 0.1, 2, steps=20), id="four points"),
        pytest.param(Curve(), curve(0.5, 0.1, 2), id="one has none"),
    ],
)
def test_where_nothing_can_be_told_nothing_is(a: Curve, b: Curve) -> None:
    assert weigh_curves("loss", a, b) is None


def state(samples: int | None, **metrics: float) -> RunState:
    data: dict[str, Any] = {**metrics, **({} if samples is None else {"samples": samples})}
    return fold([RunEvent(seq=0, t=1.0, source="trainer-0", kind="evaluation", step=5, data=data)])


def only(a: RunState, b: RunState) -> Weighed:
    (found,) = weigh(a, b)
    return found


def test_two_points_on_two_hundred_rows_are_chance_and_on_ten_thousand_are_not() -> None:
    few = only(state(200, accuracy=0.80), state(200, accuracy=0.82))
    many = only(state(10_000, accuracy=0.80), state(10_000, accuracy=0.82))
    assert (few.is_more_than_chance, many.is_more_than_chance) == (False, True)
    assert few.chance == pytest.approx(0.0768, abs=1e-3) and many.better == "b"


@pytest.mark.parametrize(
    ("name", "better"), [("f1", "b"), ("perplexity", "a"), ("eval_loss", "a"), ("tokens_in_answer", "")]
)
def test_which_way_is_better_is_known_by_name_and_else_not_said(name: str, better: str) -> None:
    name_in_event = name.removeprefix("eval_")
    found = only(state(100, **{name_in_event: 1.0}), state(100, **{name_in_event: 2.0}))
    assert (found.name, found.better, found.chance) == (name, better, None)


@pytest.mark.parametrize(("one", "other"), [(200, 300), (None, None), (200, None)])
def test_other_rows_or_unknown_ones_say_nothing_of_chance(one: int | None, other: int | None) -> None:
    assert only(state(one, accuracy=0.5), state(other, accuracy=0.9)).chance is None


def test_a_share_in_percent_is_no_share() -> None:
    assert share_chance(80.0, 82.0, 200) is None


def test_the_words_name_the_better_run_and_what_one_run_cannot_say() -> None:
    lines = list(weighed_lines(tuple(weigh(state(10_000, accuracy=0.8), state(10_000, accuracy=0.82))), ("base", "wide")))  # fmt: skip
    assert lines[0] == "accuracy on 10000 held-out rows: wide is better by 2.0 points, more than chance makes (± 1.1 points)."  # fmt: skip
    assert lines[1].startswith("One run each")
    (line,) = weighed_lines(tuple(weigh(state(100, accuracy=0.8), state(100, accuracy=0.78))), ("base", "wide"))  # fmt: skip
    assert line == "accuracy on 100 held-out rows: the difference (-2.0 points) is no more than chance makes (± 11.3 points)."  # fmt: skip


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py --lr 1e-4 --fp16", {"command": "python train.py", "--lr": "1e-4", "--fp16": "yes"}),
        ("torchrun --nproc_per_node=2 train.py -b 8", {"command": "torchrun train.py", "--nproc_per_node": "2", "-b": "8"}),
        ("python -m pkg.train optim.lr=0.1 +model.width=64", {"command": "python -m pkg.train", "optim.lr": "0.1", "model.width": "64"}),
        ("python train.py --margin -0.5 --tag a --tag b", {"command": "python train.py", "--margin": "-0.5", "--tag": "a b"}),
        ("python -u train.py", {"command": "python train.py", "-u": "yes"}),
        ("bash -c 'python x.py --a 1'", {"command": "bash -c 'python x.py --a 1'"}),
        ("python 'broken", {"command": "python 'broken"}),
    ],
)  # fmt: skip
def test_a_command_is_its_options_and_the_rest(command: str, expected: dict[str, str]) -> None:
    assert words_by_name(command) == expected
