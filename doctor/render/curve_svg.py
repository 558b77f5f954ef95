"""A chart as inline SVG: curves over steps, drawn to stand in a page without a script or a network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from doctor.language import say
from doctor.render.run_text import figure
from runner.state import Curve

WIDTH, HEIGHT, LEFT, BOTTOM = 480, 200, 56, 22
COLOURS = ("#3b6fb6", "#d1662b", "#3d8f5f", "#8a5fb0")
POINTS = 400


def chart(title: str, curves: Sequence[tuple[str, Curve]], colours: Sequence[int] = ()) -> str:
    """Return the chart of named curves under its title; of several each with its name in its colour.

    ``colours``: which of :data:`COLOURS` each has, so that a thing has the same one in all charts of a page; with them a
    single curve is named too.
    """
    chosen = list(colours) or list(range(len(curves)))
    names = [
        f'<span style="color:{_colour(index)}">{escape(name)}</span>'
        for index, (name, _) in zip(chosen, curves, strict=True)
    ]
    legend = "".join(names) if len(curves) > 1 or colours else ""
    return f"<figure><figcaption>{escape(title)}{legend}</figcaption>{curve_svg(curves, chosen)}</figure>"


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def curve_svg(curves: Sequence[tuple[str, Curve]], colours: Sequence[int] = ()) -> str:
    """Return the curves drawn; points that are not finite are left out of the line and marked above it."""
    place = _Place.of([curve for _, curve in curves])
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="11" fill="currentColor">',
        f'<path d="M{LEFT} 6V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="currentColor" opacity=".4"/>',
        *place.labels(),
    ]
    for index, (_, curve) in zip(colours or range(len(curves)), curves, strict=True):
        parts += _drawn(curve, place, _colour(index))
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class _Place:
    """Where a step and a value stand in the drawing."""

    first: float
    last: float
    low: float
    high: float

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> _Place:
        steps = [step for curve in curves for step in curve.steps]
        finite = [value for curve in curves for value in curve.values if math.isfinite(value)]
        return cls(
            min(steps, default=0.0),
            max(steps, default=1.0),
            min(finite, default=0.0),
            max(finite, default=1.0),
        )

    def x(self, step: float) -> float:
        return LEFT + (step - self.first) / ((self.last - self.first) or 1.0) * (WIDTH - LEFT - 8)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 10)

    def labels(self) -> Iterator[str]:
        for value in sorted({self.low, self.high}):
            y = min(HEIGHT - BOTTOM, self.y(value) + 4)
            yield f'<text x="{LEFT - 4}" y="{y:.0f}" text-anchor="end">{figure(value)}</text>'
        for step, anchor in ((self.first, "start"), (self.last, "end")):
            yield f'<text x="{self.x(step):.0f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{step:g}</text>'
        middle = (LEFT + WIDTH) // 2
        yield f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle" opacity=".6">{escape(say("step"))}</text>'


def _drawn(curve: Curve, place: _Place, colour: str) -> Iterator[str]:
    points = list(_thinned(curve))
    line = [(place.x(step), place.y(value)) for step, value in points if math.isfinite(value)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
    for step, value in points:
        if not math.isfinite(value):
            yield f'<text x="{place.x(step):.1f}" y="14" fill="#c00">{escape(str(value))}</text>'
    if len(line) == 1:
        yield f'<circle cx="{line[0][0]:.1f}" cy="{line[0][1]:.1f}" r="3" fill="{colour}"/>'


def _thinned(curve: Curve) -> Iterator[tuple[float, float]]:
    """Yield at most about :data:`POINTS` points: every n-th, the last, and every one that is not finite."""
    every = max(1, len(curve) // POINTS)
    for index, (step, value) in enumerate(zip(curve.steps, curve.values, strict=True)):
        if index % every == 0 or index == len(curve) - 1 or not math.isfinite(value):
            yield step, value
