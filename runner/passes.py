"""Forward and backward over the micro-batches of one window, and what the window counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from runner.data import counts
from runner.engine import SplitClock

if TYPE_CHECKING:
    from runner.workbench import Batch, Workbench


class WindowCounts(NamedTuple):
    """Of one rank's micro-batches, without stand-ins."""

    samples: int
    tokens: int
    padded_tokens: int

    @classmethod
    def of(cls, counting: list[Batch]) -> WindowCounts:
        return cls(
            sum(len(batch["labels"]) for batch in counting),
            sum(int(batch["attention_mask"].sum()) for batch in counting),
            sum(batch["attention_mask"].numel() for batch in counting),
        )


def window_passes(
    bench: Workbench, micro_batches: list[Batch], denominator: float, clock: SplitClock
) -> list[torch.Tensor]:
    """Return the losses of this rank's micro-batches; the gradients of all ranks are added up when it returns.

    Ranks meet in the last backward pass alone. Before it they agree that none of them was short of memory.

    Raises:
        runner.ranks.ShortOfMemory: one was; nobody has begun to exchange.
    """
    *first, last = micro_batches
    losses = []
    with bench.engine.agreement():
        with bench.engine.keeping_gradients():
            for batch in first:
                losses.append(_forward(bench, batch, denominator, clock))
                bench.engine.backward(losses[-1])
                clock.lap("backward")
        losses.append(_forward(bench, last, denominator, clock))
    if bench.ranks.size > 1:
        clock.lap("wait")
    bench.engine.backward(losses[-1])
    clock.lap("backward")
    return [loss.detach() for loss in losses]


def _forward(bench: Workbench, batch: Batch, denominator: float, clock: SplitClock) -> torch.Tensor:
    task, moved = bench.data.task, bench.engine.to_device(batch)
    loss = task.loss_sum(bench.engine.logits(moved), moved["labels"]) / denominator
    if not counts(batch):
        loss = loss * 0.0
    clock.lap("forward")
    return loss
