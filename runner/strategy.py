"""How several processes share one training: the simplest way that fits, with its reason."""

from __future__ import annotations

from collections.abc import Callable

import torch

from runner.foretelling import NotForetold, foretold_bytes
from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.step_request import strategy_for, worst_shape
from runner.text import Text, t


def settle_strategy(plan: Plan, model: object, ranks: Ranks, note: Callable[[str, Text], None]) -> str:
    """Return how the processes share the work, the same on all of them; empty: there is one.

    What decides is the size of the memory, not how much of it is free, so that a continued run decides alike.
    """
    _refuse_other_processes(plan.profile.parallel.processes, ranks.size)
    if ranks.size == 1:
        return ""
    samples, length = worst_shape(plan, ranks.size)
    needed: int | None = None
    try:
        needed = foretold_bytes(plan, model, samples, length)
    except NotForetold:
        needed = None  # said in the reason: the arithmetic does not know this model
    strategy, why = strategy_for(plan, needed, memory_each(plan.settings.device, ranks), ranks.size)
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


def _refuse_other_processes(wanted: int, count: int) -> None:
    """Raise InputError where a configuration file is for another number of processes than there are."""
    if wanted and wanted != count:
        raise InputError(t("parallel.processes (or a configuration file) says {wanted} {wanted:process|processes}, and {count} {count:was|were} started: "
                           "start with --nproc {wanted} (all machines together), or change it", wanted=wanted, count=count))  # fmt: skip


def memory_each(device: str, ranks: Ranks) -> int | None:
    """Return the bytes of this process's card; None: it computes on the CPU."""
    if device != "cuda":
        return None
    return int(torch.cuda.get_device_properties(ranks.place.local_rank).total_memory)
