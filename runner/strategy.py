"""How several processes share one training: the simplest way that fits, with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runner.foretelling import NotForetold, foretold_bytes
from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.refused_together import refused_together
from runner.step_request import strategy_for, worst_shape
from runner.text import Text, t


def settle_strategy(
    plan: Plan, weightless: Callable[[], Any], ranks: Ranks, note: Callable[[str, Text], None]
) -> str:
    """Return how the processes share the work, the same on all of them; empty: there is one.

    What decides is the size of the memory, not how much of it is free, so that a continued run decides alike.
    ``weightless`` returns the model without weights; it is called where their size matters.
    """
    if refused := refused_together(plan, ranks.size, plan.profile.parallel.strategy):
        raise InputError(refused)
    if ranks.size == 1:
        return ""
    told: tuple[str, Text] = ranks.told(_chosen(plan, weightless, ranks) if ranks.is_first else None)
    if ranks.is_first:
        note(
            "info",
            t(
                "{count} {count:process trains|processes train} together: {strategy}",
                count=ranks.size,
                strategy=told[0],
            ),
        )
        note("info", told[1])
    return told[0]


def _chosen(plan: Plan, weightless: Callable[[], Any], ranks: Ranks) -> tuple[str, Text]:
    available = memory_each(plan.settings.device, ranks)
    needed: int | None = None
    if available is not None and plan.profile.parallel.strategy == "auto":
        try:
            needed = foretold_bytes(plan, weightless(), *worst_shape(plan, ranks.size))
        except (NotForetold, RuntimeError):  # unknown to the arithmetic, or not to be built without weights
            needed = None
    return strategy_for(plan, needed, available, ranks.size)


def memory_each(device: str, ranks: Ranks) -> int | None:
    """Return the bytes of this process's card; None: it computes on the CPU."""
    if device != "cuda":
        return None
    return int(torch.cuda.get_device_properties(ranks.place.card).total_memory)
