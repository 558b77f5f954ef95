"""Which parameters stand still, and until when: a function of how many updates were done."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import torch

from runner.inputs import InputError
from runner.profile import FreezeRule
from runner.text import t


class FreezePlan:
    """The rules of a profile over the parameters of a model.

    A parameter that is frozen for good is left out of the optimizer. One that is frozen for a while stays in
    it and has no gradient meanwhile: AdamW passes it over, without decay, and its moments begin when it
    moves.
    """

    def __init__(self, model: torch.nn.Module, rules: list[FreezeRule]) -> None:
        self._until: list[tuple[Any, int]] = []
        names = dict(model.named_parameters())
        for rule in rules:
            matched = [parameter for name, parameter in names.items() if fnmatchcase(name, rule.parameters)]
            if not matched:
                some = ", ".join(list(names)[:4])
                raise InputError(
                    t("train.freeze: no parameter is called {pattern} (there are {some} ...)",
                      pattern=rule.parameters, some=some)
                )  # fmt: skip
            for parameter in matched:
                if rule.until is None:
                    parameter.requires_grad_(False)
                else:
                    self._until.append((parameter, rule.until))

    def apply(self, updates_done: int) -> None:
        """Freeze and free for the next update; the last of several rules for one parameter counts."""
        for parameter, until in self._until:
            parameter.requires_grad_(updates_done >= until)
