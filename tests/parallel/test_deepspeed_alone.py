"""What can be said of DeepSpeed without it: it is not there, or a parameter gets no gradient."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from runner.deepspeed_engine import Unused
from runner.deepspeed_setup import imported
from runner.inputs import InputError
from runner.text import Text

pytestmark = pytest.mark.train


def test_without_deepspeed_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    with pytest.raises(InputError, match="pip install"):
        imported()


def test_a_release_whose_inside_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("deepspeed")
    other.__version__ = "0.20.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deepspeed", other)
    with pytest.raises(InputError, match="knows other releases"):
        imported()


class TwoHeads(torch.nn.Module):  # type: ignore[misc]  # torch is not followed
    def __init__(self) -> None:
        super().__init__()
        self.used, self.spare = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.used(x)
        return found


def test_parameters_that_nothing_uses_are_named_once() -> None:
    said: list[Text] = []
    model = TwoHeads()
    model.used.bias.requires_grad_(False)
    unused = Unused(model, lambda level, text: said.append(text))
    model(torch.ones(3, 4)).sum().backward()
    unused.tell_once()
    unused.tell_once()
    (text,) = said
    assert text.params["names"] == "spare.bias, spare.weight" and text.params["count"] == 2


def test_nothing_is_said_where_all_are_used() -> None:
    said: list[Text] = []
    model = torch.nn.Linear(4, 2)
    unused = Unused(model, lambda level, text: said.append(text))
    model(torch.ones(3, 4)).sum().backward()
    unused.tell_once()
    assert not said
