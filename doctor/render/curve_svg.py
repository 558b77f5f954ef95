"""A chart as inline SVG: curves over steps, drawn to stand in a page without a script or a network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from doctor.render.run_text import figure
from runner.state import Curve

WIDTH, HEIGHT, LEFT, BOTTOM = 480, 200, 56, 22
COLOURS = ("#3b6fb6", "#d1662b", "#3d8f5f", "#8a5fb0")
POINTS = 400


def curve_svg(curves: Sequence[tuple[str, Curve]]) -> str:
    """Return the chart of named curves; points that are not finite are left out of the line and marked above it."""
    steps = [step for _, curve in curves for step in curve.steps]
    finite = [value for _, curve in curves for value in curve.values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    first, last = min(steps, default=0.0), max(steps, default=1.0)

    def place(step: float, value: float) -> tuple[float, float]:
        x = LEFT + (step - first) / ((last - first) or 1.0) * (WIDTH - LEFT - 8)
        y = HEIGHT - BOTTOM - (value - low) / ((high - low) or 1.0) * (HEIGHT - BOTTOM - 10)
        return x, y

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="11" fill="currentColor">',
        f'<path d="M{LEFT} 6V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="currentColor" opacity=".4"/>',
        f'<text x="{LEFT - 4}" y="14" text-anchor="end">{figure(high)}</text>',
        f'<text x="{LEFT - 4}" y="{HEIGHT - BOTTOM}" text-anchor="end">{figure(low)}</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{first:g}</text>',
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end">{last:g}</text>',
    ]
    for index, (name, curve) in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        points = list(_thinned(curve))
        line = [place(step, value) for step, value in points if math.isfinite(value)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        for step, value in points:
            if not math.isfinite(value):
                parts.append(
                    f'<text x="{place(step, low)[0]:.1f}" y="14" fill="#c00">{escape(str(value))}</text>'
                )
        if len(line) == 1:
            parts.append(f'<circle cx="{line[0][0]:.1f}" cy="{line[0][1]:.1f}" r="3" fill="{colour}"/>')
        if len(curves) > 1:
            parts.append(f'<text x="{LEFT + 8 + 120 * index}" y="16" fill="{colour}">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])


def _thinned(curve: Curve) -> Iterator[tuple[float, float]]:
    """Yield at most about :data:`POINTS` points: every n-th, the last, and every one that is not finite."""
    every = max(1, len(curve) // POINTS)
    for index, (step, value) in enumerate(zip(curve.steps, curve.values, strict=True)):
        if index % every == 0 or index == len(curve) - 1 or not math.isfinite(value):
            yield step, value
