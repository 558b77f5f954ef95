"""Which parameters stand still, and until when: a function of how many updates were done."""

from __future__ import annotations

from fnmatch import fnmatchcase

import torch

from runner.inputs import InputError
from runner.profile import FreezeRule
from runner.text import t


class FreezePlan:
    """The rules of a profile over the parameters of a model.

    A parameter that is frozen for good is left out of the optimizer. One that is frozen for a while stays in
    it and has no gradient meanwhile: AdamW passes it over, without decay, and its moments begin when it
    moves. The last of several rules for one parameter counts.
    """

    def __init__(self, model: torch.nn.Module, rules: list[FreezeRule]) -> None:
        names = dict(model.named_parameters())
        until: dict[str, int | None] = {}
        for rule in rules:
            matched = [name for name in names if fnmatchcase(name, rule.parameters)]
            if not matched:
                some = ", ".join(list(names)[:4])
                raise InputError(
                    t("train.freeze: no parameter is called {pattern} (there are {some} ...)",
                      pattern=rule.parameters, some=some)
                )  # fmt: skip
            until |= dict.fromkeys(matched, rule.until)
        trained = {name for name, parameter in names.items() if parameter.requires_grad}
        self._until = {
            name: update for name, update in until.items() if update is not None and name in trained
        }
        for name, update in until.items():
            if update is None:
                names[name].requires_grad_(False)

    def apply(self, model: torch.nn.Module, updates_done: int) -> None:
        """Freeze and free for the next update."""
        if not self._until:
            return
        for name, parameter in model.named_parameters():
            if name in self._until:
                parameter.requires_grad_(updates_done >= self._until[name])
