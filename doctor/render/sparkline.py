"""A curve in one line of text, and a bar. Non-finite values are shown as what they are: a mark, never a gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-~=+*#"


def sparkline(values: Sequence[float], width: int, unicode: bool = True) -> str:
    """Return at most ``width`` characters, each the mean of its share of ``values``; ``!`` where one is not finite."""
    levels = BLOCKS if unicode else ASCII
    buckets = _buckets(values, width)
    finite = [value for value in buckets if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = (high - low) or 1.0
    return "".join(
        levels[min(7, int((value - low) / span * 8))] if math.isfinite(value) else "!" for value in buckets
    )


def _buckets(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [round(index * len(values) / width) for index in range(width + 1)]
    return [sum(values[left:right]) / (right - left) for left, right in pairwise(edges)]


def bar(share: float, width: int, unicode: bool = True) -> str:
    """Return a bar ``width`` characters wide, filled to ``share`` (0 to 1)."""
    full = round(max(0.0, min(1.0, share)) * width)
    return ("█" if unicode else "#") * full + ("░" if unicode else ".") * (width - full)
