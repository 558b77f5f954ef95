"""A series of values thinned to a bounded number of points, for drawing a run of any length. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence


class Curve:
    """A series of ``(step, value)`` thinned to at most ``limit`` points; the first, the last and extremes are kept.

    When full, neighbouring pairs are folded into the one point of the two that lies farther from their mean
    neighbours, so memory stays bounded for a run of a million steps.
    """

    def __init__(self, limit: int = 2000) -> None:
        self.limit = limit
        self.steps: list[float] = []
        self.values: list[float] = []

    def add(self, step: float, value: float) -> None:
        """Add a point. One of an earlier step takes the place of what came after it: the training went back to a checkpoint,
        and the weights of those losses are no more."""
        while self.steps and self.steps[-1] > step:
            self.steps.pop()
            self.values.pop()
        self.steps.append(step)
        self.values.append(value)
        if len(self.steps) > self.limit:
            self._thin()

    def _thin(self) -> None:
        keep = [0]
        for left in range(1, len(self.values) - 2, 2):
            previous = self.values[keep[-1]]
            first, second = self.values[left], self.values[left + 1]
            keep.append(left if abs(first - previous) > abs(second - previous) else left + 1)
        keep.append(len(self.values) - 1)
        self.steps = [self.steps[index] for index in keep]
        self.values = [self.values[index] for index in keep]

    def smoothed(self, weight: float = 0.9) -> list[float]:
        return smoothed(self.values, weight)

    def __len__(self) -> int:
        return len(self.values)


def smoothed(values: Sequence[float], weight: float = 0.9) -> list[float]:
    """Return the exponential moving average (bias-corrected, as TensorBoard draws it); non-finite values pass."""
    average, total, out = 0.0, 0.0, []
    for value in values:
        if not math.isfinite(value):
            out.append(value)
            continue
        average = weight * average + (1 - weight) * value
        total = weight * total + (1 - weight)
        out.append(average / total)
    return out
