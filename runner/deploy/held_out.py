"""The held-out rows of a run, as batches with their labels: what an exported model is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from runner.data import Prepared, batches
from runner.deploy.session import Batch
from runner.deploy.trained import Trained, encode
from runner.plan import decode_plan
from runner.prepare import prepare_data
from runner.rundir import RunDir
from runner.signals import StopRequest

BATCH_SIZE = 16


class HeldOut:
    """The held-out part of a run's data, as it was trained with."""

    def __init__(self, data: Prepared, trained: Trained) -> None:
        self.data, self.trained = data, trained

    def batches(self) -> Iterator[tuple[Batch, torch.Tensor]]:
        """Yield (inputs, labels), texts of like length together."""
        order = self.data.eval.lengths.argsort(kind="stable")
        lots = (order[start : start + BATCH_SIZE].tolist() for start in range(0, len(order), BATCH_SIZE))
        for batch in batches(self.data, "eval", lots, -1, 0, 0, False):
            inputs = {name: batch[name] for name in self.trained.input_names if name in batch}
            if "token_type_ids" in self.trained.input_names and "token_type_ids" not in inputs:
                inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
            yield inputs, batch["labels"]

    def metrics(self, answer: Any) -> dict[str, float]:
        """Return the task's metrics of ``answer(inputs)``, a tensor of logits, over all rows."""
        counted = self.data.task.metrics()
        for inputs, labels in self.batches():
            counted.update(answer(inputs), labels)
        return {name: float(value) for name, value in counted.result().items()}


def open_held_out(run: Path, trained: Trained) -> HeldOut:
    """Open the prepared rows of a run.

    Raises:
        OSError, InputError, PlanError: there are none, or they were changed since.
    """
    folder = RunDir(run)
    plan = decode_plan(folder.plan.read_bytes())
    if not (folder.data / "data.json").is_file():
        raise FileNotFoundError(2, "no prepared rows", str(folder.data))
    return HeldOut(prepare_data(plan, folder, lambda *_: None, StopRequest()), trained)


def batches_of(texts: list[str], trained: Trained) -> Iterator[Batch]:
    """Yield texts as batches, in their order."""
    for start in range(0, len(texts), BATCH_SIZE):
        yield encode(trained, texts[start : start + BATCH_SIZE])
