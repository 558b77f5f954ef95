"""The learning rate as a function of how many updates were done: nothing to save, nothing to step. Pure."""

from __future__ import annotations

import math

from runner.profile import TrainSection


def warmup_updates(train: TrainSection, total: int) -> int:
    """Return the updates of warmup: a whole number as given, a share rounded up."""
    if isinstance(train.warmup, int):
        return train.warmup
    return math.ceil(train.warmup * total)


def lr_at(update: int, total: int, train: TrainSection) -> float:
    """Return the learning rate of update number ``update`` (from 0) of ``total``.

    As in transformers' schedules: it rises from 0 over the warmup, then falls to 0 at ``total`` (constant:
    stays).
    """
    warmup = warmup_updates(train, total)
    if update < warmup:
        return train.lr * update / warmup
    left = max(0.0, (total - update) / max(1, total - warmup))
    if train.schedule == "linear":
        return train.lr * left
    if train.schedule == "cosine":
        return train.lr * 0.5 * (1 + math.cos(math.pi * (1 - left)))
    if train.schedule == "polynomial":
        return float(train.lr * left**train.polynomial_power)
    return train.lr
