"""The real texts that an exported model is tried on: the held-out rows of a run, or texts that were given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from runner.data import Prepared, batches
from runner.deploy.from_run import read_run
from runner.deploy.session import Batch
from runner.deploy.trained import Trained, encode
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

    def metrics(self) -> Any:
        """Return what counts the task's metrics: ``update(logits, labels)``, ``result()``."""
        return self.data.task.metrics()


class GivenTexts:
    """Texts without labels, in their order."""

    def __init__(self, texts: list[str], trained: Trained) -> None:
        self.texts, self.trained = texts, trained

    def batches(self) -> Iterator[tuple[Batch, None]]:
        """Yield (inputs, None)."""
        for start in range(0, len(self.texts), BATCH_SIZE):
            yield encode(self.trained, self.texts[start : start + BATCH_SIZE]), None

    def metrics(self) -> None:
        """Return None: there is nothing to hold an answer against."""
        return


def open_held_out(run: Path, trained: Trained) -> HeldOut:
    """Open the prepared rows of a run.

    Raises:
        OSError, InputError, PlanError: there are none, or they were changed since.
    """
    folder = RunDir(run)
    plan, _ = read_run(folder)
    return HeldOut(prepare_data(plan, folder, lambda *_: None, StopRequest()), trained)
