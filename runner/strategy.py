"""How several processes share one training: the simplest way that fits, with its reason."""

from __future__ import annotations

from collections.abc import Callable

import torch

from runner.foretelling import NotForetold, foretold_bytes
from runner.plan import Plan
from runner.ranks import Ranks
from runner.text import Text, t

USABLE = 0.92
"""Of a device's memory: the rest is the context's, the allocator's and the exchange's buckets."""


def settle_strategy(plan: Plan, model: object, ranks: Ranks, note: Callable[[str, Text], None]) -> str:
    """Return how the processes share the work, the same on all of them; empty: there is one.

    What decides is the size of the memory, not how much of it is free, so that a continued run decides alike.
    """
    if ranks.size == 1:
        return ""
    asked = plan.profile.parallel.strategy
    samples = min(plan.settings.micro_batch_size, -(-plan.profile.train.batch_size // ranks.size))
    needed: int | None = None
    try:
        needed = foretold_bytes(plan, model, samples, plan.profile.train.max_length)
    except NotForetold:
        needed = None  # said in the reason: the arithmetic does not know this model
    strategy, why = choose_strategy(asked, needed, memory_each(plan.settings.device, ranks), ranks.size)
    told: tuple[str, Text] = ranks.told((strategy, why))
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


def choose_strategy(
    asked: str, needed_bytes: int | None, available_bytes: int | None, processes: int
) -> tuple[str, Text]:
    """Return ``ddp`` or ``fsdp`` and why; what the profile names is taken as it is. Pure."""
    if asked != "auto":
        return asked, t("asked for in the profile")
    if available_bytes is None:
        return "ddp", t(
            "a copy of the model in each process, the simplest: they share one machine's memory either way"
        )
    if needed_bytes is None:
        return "ddp", t(
            "a copy of the model in each process, the simplest; whether it fits is not known for this architecture"
        )
    amounts = {"needed": needed_bytes >> 20, "available": available_bytes >> 20}
    if needed_bytes <= available_bytes * USABLE:
        return "ddp", t(
            "a copy of the model in each process, the simplest, fits: {needed} of {available} MB", **amounts
        )
    return "fsdp", t("a copy of the model in each process would not fit ({needed} of {available} MB): weights, gradients and "
                     "moments are cut into {count} parts", **amounts, count=processes)  # fmt: skip


def memory_each(device: str, ranks: Ranks) -> int | None:
    """Return the bytes of this process's card; None: it computes on the CPU."""
    if device != "cuda":
        return None
    return int(torch.cuda.get_device_properties(ranks.place.local_rank).total_memory)
