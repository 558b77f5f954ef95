"""The held-out rows answered and counted. Draws nothing, and leaves every module in the mode it was in."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from runner.data import Prepared, batches
from runner.engine import Engine
from runner.signals import StopRequest


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    metrics: dict[str, float]
    """The task's metrics and ``loss``, over all held-out rows, whatever the batch size."""
    samples: int
    seconds: float


def evaluate(
    engine: Engine, data: Prepared, batch_size: int, seed: int, workers: int, stop: StopRequest
) -> Evaluation | None:
    """Return how well the held-out rows are answered; None where asked to stop meanwhile."""
    started = time.monotonic()
    metrics = data.task.metrics()
    loss_sum = denominator = 0.0
    order = data.eval.lengths.argsort(kind="stable")
    lots = (order[start : start + batch_size].tolist() for start in range(0, len(order), batch_size))
    with evaluation_mode(engine.model), engine.without_gradients():
        for batch in batches(data, "eval", lots, -1, seed, workers, engine.pins):
            if stop:
                return None
            moved = engine.to_device(batch)
            logits = engine.logits(moved)
            loss_sum += float(data.task.loss_sum(logits, moved["labels"]))
            denominator += data.task.denominator(batch["labels"])
            metrics.update(logits, batch["labels"])
    loss_sum, denominator = engine.summed(loss_sum, denominator)
    result = {"loss": loss_sum / denominator, **metrics.result()}
    return Evaluation(metrics=result, samples=len(order), seconds=time.monotonic() - started)


@contextlib.contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Switch dropout off; afterwards every module has its own former mode back, frozen ones too."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
