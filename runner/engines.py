"""The engine that trains a placed model, and the optimizer it updates with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.engine import Engine
from runner.optim import make_optimizer
from runner.placement import Placed
from runner.plan import Plan
from runner.text import Text


def make_engine(placed: Placed, plan: Plan, note: Callable[[str, Text], None]) -> tuple[Engine, Any]:
    """Return torch's own engine and AdamW, or DeepSpeed's, which brings its own."""
    settings = plan.settings
    if placed.strategy == "deepspeed":
        from runner.deepspeed_engine import ZeroEngine

        zero = ZeroEngine(placed, settings, note)
        return zero, zero.moments
    on_host = settings.offload == "optimizer"
    return Engine(placed, settings), make_optimizer(placed.bare, plan.profile.train, settings.fused, on_host)
