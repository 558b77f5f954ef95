"""Passes that leave nothing behind: forward and backward without an update; generators, buffers and gradients are after
it what they were before."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from runner.data import batches
from runner.recovery import float_buffers
from runner.workbench import Batch, Workbench


@contextlib.contextmanager
def leaving_no_trace(bench: Workbench) -> Iterator[None]:
    """Put back what passes change: random states, running means, gradients."""
    engine = bench.engine
    buffers = float_buffers(engine.bare_model)
    numpy_state: Any = numpy.random.get_state()
    python_state, state = random.getstate(), torch.get_rng_state()
    cards = torch.cuda.get_rng_state_all() if engine.device.type == "cuda" else []
    training = engine.model.training
    engine.model.train()
    bench.freeze.apply(engine.bare_model, bench.state.updates_done)
    try:
        yield
    finally:
        engine.drop_gradients(bench.optimizer)
        engine.bare_model.load_state_dict(buffers, strict=False)
        engine.model.train(training)
        torch.set_rng_state(state)
        numpy.random.set_state(numpy_state)
        random.setstate(python_state)
        if cards:
            torch.cuda.set_rng_state_all(cards)


def rehearse(bench: Workbench, batch: Batch) -> None:
    """Forward and backward of one micro-batch, waited for. Raises what the passes raise."""
    engine, task = bench.engine, bench.data.task
    moved = engine.to_device(batch)
    loss = task.loss_sum(engine.logits(moved), moved["labels"])
    engine.backward(loss / max(1.0, task.denominator(batch["labels"])))
    if engine.device.type == "cuda":
        torch.cuda.synchronize(engine.device)


def batches_of(bench: Workbench, micro_batches: list[list[int]]) -> list[Batch]:
    """Return training batches of the given samples."""
    return list(batches(bench.data, "train", micro_batches, 0, bench.seed, 0, False))
