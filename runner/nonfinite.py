"""A loss or a gradient that is no number: what is said of it, and which rows it came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runner.text import t


class NonFiniteError(Exception):
    """A loss or a gradient norm that is no number, seen before it reached the weights."""

    def __init__(self, window: int, loss: float, norm: float, rows: list[int]) -> None:
        self.window, self.loss, self.norm, self.rows = window, loss, norm, rows
        shown = ", ".join(map(str, rows[:20])) + (" ..." if len(rows) > 20 else "")
        self.text = t(
            "step {step}: loss {loss}, gradient norm {norm}: stopped before the update; data rows: {rows}",
            step=window + 1,
            loss=str(loss),
            norm=str(norm),
            rows=shown,
        )
        super().__init__(str(self.text))


def suspect_rows(micro_batches: Sequence[dict[str, Any]], losses: Sequence[float]) -> list[int]:
    """Return the source rows of the micro-batches whose loss is not finite; of all, where only the norm is
    not."""
    bad = [batch for batch, loss in zip(micro_batches, losses, strict=True) if not math.isfinite(loss)]
    return [int(row) for batch in bad or micro_batches for row in batch["rows"]]
