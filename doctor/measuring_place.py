"""Where steps are really run to measure memory, how much of it they may take, and for how long."""

from __future__ import annotations

import resource

import msgspec

from doctor.card_state import CardState
from doctor.measuring import refusal
from doctor.memory_troubles import CannotMeasure
from doctor.model import Snapshot
from doctor.plan_device import device_of
from doctor.plan_options import PlanOptions
from doctor.planning import torch_version
from runner.estimate import MemoryRequest
from runner.text import t

LIMIT_S = 600.0
"""For all steps together; a CPU takes minutes for what a card does in seconds."""
KEPT_FREE = 0.1
"""Of a CPU's free memory that no measurement takes: the machine is not to swap for it."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where steps are really run, and for how long."""

    python: str
    torch: str
    card: CardState
    limit_bytes: int
    """0: what the GPU has free."""
    capped: bool = False
    """The limit was asked for."""
    limit_s: float = LIMIT_S


def place_for(request: MemoryRequest, snapshot: Snapshot, options: PlanOptions, limit_s: float) -> Place:
    """Return where a request can be measured.

    Raises:
        CannotMeasure: the machine is a file, has no device or no interpreter, or this cannot be measured on one device.
    """
    if options.recorded:
        raise CannotMeasure(t("a recorded machine runs no steps: leave --facts out"))
    card = device_of(snapshot, options)
    if card is None:
        raise CannotMeasure(t("there is no card here to measure on: --cpu measures on the CPU"))
    python = snapshot.facts.python.value
    if python is None or not python.executable:
        raise CannotMeasure(t("no Python with torch and transformers was found; name one with --python PATH"))
    refused = refusal(request)
    if refused is not None:
        raise CannotMeasure(refused)
    on_cpu = min(int(card.free_bytes * (1 - KEPT_FREE)), own_limit_bytes()) if request.device == "cpu" else 0
    return Place(
        python=python.executable, torch=torch_version(snapshot), card=card,
        limit_bytes=options.memory_limit_bytes or on_cpu, capped=options.memory_limit_bytes is not None, limit_s=limit_s,
    )  # fmt: skip


def own_limit_bytes() -> int:
    """Return what the session's own limits leave a process (``ulimit -d``, ``ulimit -v``); a great number: nothing limits it."""
    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    return min((one for one in soft if one != resource.RLIM_INFINITY), default=1 << 62)
