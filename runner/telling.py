"""What a run in progress tells of itself: that it started, where, and each step."""

from __future__ import annotations

import os
import socket
from typing import Any

import torch

from runner.engine import SplitClock
from runner.passes import WindowCounts
from runner.plan import Plan
from runner.text import t
from runner.workbench import Workbench


def say_started(bench: Workbench, resume: bool) -> None:
    """Write ``run-started`` and, for a fresh run, which of its weights are new."""
    resumed = {"resumed_from_step": bench.state.windows_done} if resume else {}
    bench.journal.write(
        "run-started",
        bench.state.windows_done,
        device=bench.state.device_name,
        precision=bench.settings.precision,
        steps_total=bench.total,
        epochs=bench.train.epochs,
        samples_total=bench.samples,
        model=model_name(bench.plan),
        torch=str(torch.__version__),
        parameters=sum(parameter.numel() for parameter in bench.engine.bare_model.parameters()),
        **process_facts(),
        **together_facts(bench),
        **resumed,
    )
    if bench.new_weights and not resume and bench.new_weights != ["*"]:
        names = ", ".join(bench.new_weights[:6])
        bench.journal.note("info", t("new, seeded weights (not pretrained): {names}", names=names))


def say_step(
    bench: Workbench,
    counted: WindowCounts,
    loss: float,
    norm: float,
    lr: float,
    epoch: int,
    clock: SplitClock,
    updated: bool,
) -> None:
    """Write the ``step`` event of the window just counted."""
    split = clock.finish()
    data: dict[str, Any] = {
        "loss": loss,
        "lr": lr,
        "grad_norm": norm,
        "samples": counted.samples,
        "tokens": counted.tokens,
        "padded_tokens": counted.padded_tokens,
        "epoch": epoch,
        "seconds": clock.seconds,
        "split": split,
    }
    if not updated:
        data["skipped"] = True
    bench.journal.write("step", bench.state.windows_done, **data)
    bench.journal.progress(bench.state.windows_done, bench.total, data)


def model_name(plan: Plan) -> str:
    model = plan.profile.model
    return model.hub or model.package or model.path or str(model.config.get("model_type", ""))


def together_facts(bench: Workbench) -> dict[str, Any]:
    """Return how many processes train together and how; nothing where one trains alone."""
    if bench.ranks.size == 1:
        return {}
    return {
        "world_size": bench.ranks.size,
        "rank": bench.ranks.rank,
        "local_rank": bench.ranks.place.local_rank,
        "strategy": bench.state.strategy,
        "threads": bench.threads,
    }


def process_facts() -> dict[str, Any]:
    return {"pid": os.getpid(), "hostname": socket.gethostname()}
