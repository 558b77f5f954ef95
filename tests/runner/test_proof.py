"""A fingerprint is of every bit, and of nothing but the bits, their shape, their type and their name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.train


def tensor(values: Any, dtype: str = "float32") -> Any:
    import torch

    return torch.tensor(values, dtype=getattr(torch, dtype))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(([1.0, 2.0],), ([1.0, 2.0],), True, id="equal"),
        pytest.param(([1.0, 2.0],), ([1.0, 2.0000002],), False, id="the last bit"),
        pytest.param(([0.0],), ([-0.0],), False, id="the sign of zero"),
        pytest.param(([1.0, 2.0],), ([[1.0, 2.0]],), False, id="another shape"),
        pytest.param(([0], "int32"), ([0.0], "float32"), False, id="another type with the same bytes"),
        pytest.param(([1.0], "bfloat16"), ([1.0], "bfloat16"), True, id="bfloat16"),
        pytest.param((3.5,), (3.5,), True, id="a scalar"),
        pytest.param(([],), ([],), True, id="nothing in it"),
        pytest.param(([True, False], "bool"), ([True, True], "bool"), False, id="booleans"),
    ],
)
def test_a_fingerprint(one: Any, other: Any, same: bool) -> None:
    from runner.proof import fingerprint

    assert (fingerprint("w", tensor(*one)) == fingerprint("w", tensor(*other))) == same


def test_how_a_tensor_lies_in_memory_does_not_count_but_its_name_does() -> None:
    from runner.proof import fingerprint

    square = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert fingerprint("w", square.t()) == fingerprint("w", square.t().contiguous())
    assert fingerprint("w", square) != fingerprint("v", square)


def test_a_draw_from_any_generator_changes_the_random_state() -> None:
    import random

    import numpy
    import torch

    from runner.proof import fingerprints, random_states

    draws: dict[str, Callable[[], Any]] = {
        "python": random.random,
        "numpy": numpy.random.random,
        "torch": lambda: torch.rand(1),
    }
    for name, draw in draws.items():
        before = fingerprints(random_states())
        draw()
        after = fingerprints(random_states())
        assert [key for key in before if before[key] != after[key]] == [name]
