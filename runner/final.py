"""The finished model: a folder that ``from_pretrained`` opens, with its labels, its tokenizer and how good it
is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from runner.adapters import save_with_adapters
from runner.checkpoint import TrainState
from runner.data import Prepared
from runner.durable import publish_folder, seal_folder
from runner.plan import Plan
from runner.rundir import RunDir


def write_final(
    run: RunDir, plan: Plan, data: Prepared, model: Any, state: TrainState, metrics: dict[str, float]
) -> Path:
    """Write ``RUN_DIR/final``, whole or not at all.

    Raises:
        OSError: no space; the checkpoints hold the same weights.
    """
    making = run.path / "final.making"
    shutil.rmtree(making, ignore_errors=True)
    if plan.profile.model.lora is not None:
        save_with_adapters(model, plan.profile.model.lora, making)
    else:
        model.save_pretrained(str(making))
    data.tokenizer.save_pretrained(str(making))
    report = {
        "metrics": metrics,
        "steps": state.windows_done,
        "updates": state.updates_done,
        "samples_seen": state.samples_done,
        "train_samples": data.facts.train.samples,
        "held_out_samples": data.facts.eval.samples,
        "labels": data.task.classes,
        "best_step": state.best_window,
        "non_finite_steps": state.non_finite_windows,
        "plan_digest": plan.digest,
        "seed": plan.profile.run.seed,
    }
    (making / "metrics.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    seal_folder(making)
    publish_folder(making, run.final)
    return run.final
