"""Whether a run can be continued to the bit where it is now: what it was begun with, held against what is here."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import torch
import transformers

from runner.inputs import InputError
from runner.text import Text, t
from runner.train_state import TrainState

CONDITIONS = (
    "torch_version",
    "transformers_version",
    "threads",
    "device_name",
    "cpu_capability",
    "world_size",
    "strategy",
    "deepspeed_version",
)
"""What changes the last digits of a sum. An empty one was not recorded, and is then not compared."""


def conditions(threads: int, device: torch.device, world_size: int = 1, strategy: str = "") -> dict[str, Any]:
    """Return :data:`CONDITIONS` as they are in this process."""
    return {
        "torch_version": str(torch.__version__),
        "transformers_version": str(transformers.__version__),
        "threads": threads,
        "device_name": device_name(device),
        "cpu_capability": torch.backends.cpu.get_cpu_capability() if device.type == "cpu" else "",
        "world_size": world_size,
        "strategy": strategy,
        "deepspeed_version": version("deepspeed") if strategy == "deepspeed" else "",
    }


def device_name(device: torch.device) -> str:
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"


def refuse_or_accept(saved: TrainState, now: TrainState, approximate: bool) -> Text | None:
    """Refuse what cannot continue to the bit, unless the person accepts it: it is then written down, and said.

    Raises:
        InputError: another plan (its batches, its rates), other weights below those that are trained, or conditions
            that differ without ``approximate``.
    """
    if saved.plan_digest != now.plan_digest:
        raise InputError(t("the checkpoint of step {step} belongs to another plan (its data, batches or rates differ); "
                           "start a new run", step=saved.windows_done))  # fmt: skip
    if saved.base_sha256 and saved.base_sha256 != now.base_sha256:
        raise InputError(
            t("the weights of {base} that this run builds on are not those it was begun with (now {now}): put them back, "
              "or start a new run", base=saved.base, now=now.base or "-")
        )  # fmt: skip
    found = [(name, getattr(saved, name), getattr(now, name)) for name in CONDITIONS]
    differences = [f"{name}: {was} -> {here}" for name, was, here in found if was and here and was != here]
    if not differences:
        return None
    shown = "; ".join(differences)
    if not approximate:
        raise InputError(t("cannot continue to the bit here ({differences}); --approximate continues anyway",
                           differences=shown))  # fmt: skip
    for name, _, here in found:
        setattr(saved, name, here)
    saved.approximate = [*saved.approximate, f"step {saved.windows_done}: {shown}"]
    return t("continued approximately: {differences}", differences=shown)
