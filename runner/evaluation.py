"""The held-out rows answered and counted. Draws nothing, and leaves every module in the mode it was in."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import torch

from runner.data import Prepared, batches, counts
from runner.engine import Engine
from runner.ranks import AgreedStop


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    metrics: dict[str, float]
    """The task's metrics and ``loss``, over all held-out rows, whatever the batch size."""
    samples: int
    seconds: float


def evaluate(
    engine: Engine, data: Prepared, batch_size: int, seed: int, workers: int, stop: AgreedStop,
    answered: Callable[[int, int], None],
) -> Evaluation | None:  # fmt: skip
    """Return how well the held-out rows are answered; None where asked to stop meanwhile.
    ``answered`` is told of each batch, and of how many.

    Several ranks answer a part each, every row once, and know the whole: the same numbers on all of them.
    """
    started = time.monotonic()
    metrics = data.task.metrics()
    loss_sum = denominator = 0.0
    order = data.eval.lengths.argsort(kind="stable")
    ranks = engine.placed.ranks
    lots, total = (
        dealt_lots(order, batch_size, ranks.rank, ranks.size),
        math.ceil(len(order) / batch_size / ranks.size),
    )
    with evaluation_mode(engine.model), engine.without_gradients():
        for number, batch in enumerate(batches(data, "eval", lots, -1, seed, workers, engine.pins), 1):
            if stop.ask():
                return None
            with engine.agreement():
                moved = engine.to_device(batch)
                logits = engine.logits(moved)
                own = float(data.task.loss_sum(logits, moved["labels"]))
            if not counts(batch):
                continue
            loss_sum += own
            denominator += data.task.denominator(batch["labels"])
            metrics.update(logits, batch["labels"])
            answered(number, total)
    loss_sum, denominator = ranks.summed(loss_sum, denominator)
    # Held-out rows that all weigh nothing (a class that no training row has, with balanced weights) have no mean.
    loss = loss_sum / denominator if denominator else math.nan
    result = {"loss": loss, **added_up(ranks.gathered(metrics)).result()}
    return Evaluation(metrics=result, samples=len(order), seconds=time.monotonic() - started)


def dealt_lots(order: Any, batch_size: int, rank: int, ranks: int) -> Iterator[list[int]]:
    """Yield one rank's batches: every ``ranks``-th, and stand-ins (numbers below 0) so that all ranks have as many."""
    starts = range(0, len(order), batch_size)
    for first in range(0, len(starts), ranks):
        own = first + rank
        stand_in = [~int(order[0])]
        yield order[starts[own] : starts[own] + batch_size].tolist() if own < len(starts) else stand_in


def added_up(metrics: list[Any]) -> Any:
    """Return the counts of several metrics of one kind in the first: numbers and tensors that are not the same by kind
    (names, flags) are sums over samples, whatever the kind."""
    whole = metrics[0]
    for other in metrics[1:]:
        for name, value in vars(other).items():
            if isinstance(value, (int, float, torch.Tensor)) and not isinstance(value, bool):
                setattr(whole, name, getattr(whole, name) + value)
    return whole


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
