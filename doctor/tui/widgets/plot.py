"""Line charts in Braille dots, as rows of text. Pure: numbers in, rows out; no library, no numpy, few bytes.

Curves differ by their drawing, not by colour alone: raw values are loose dots, a smoothed curve is a joined
line, evaluations are ``◆``, values that are not finite are ``×`` on the upper edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text as Styled

from doctor.render.layout import display_width

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of the dot at (column 0-1, row 0-3 from the top) of a Braille cell, U+2800."""
AXIS_WIDTH = 8


class Line(NamedTuple):
    """One curve: points, how it is drawn (``dots`` ``joined`` ``marks``) and its rich style."""

    steps: Sequence[float]
    values: Sequence[float]
    drawn: str = "joined"
    style: str = ""


class Canvas:
    """Cells of Braille dots and marks; later curves lie over earlier ones."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.bits = [[0] * width for _ in range(height)]
        self.styles = [[""] * width for _ in range(height)]
        self.marks: dict[tuple[int, int], str] = {}

    def dot(self, x: int, y: int, style: str) -> None:
        """Set the dot at ``x`` of ``2 * width`` and ``y`` of ``4 * height``, from the upper left corner."""
        row, column = y >> 2, x >> 1
        self.bits[row][column] |= _DOTS[x & 1][y & 3]
        self.styles[row][column] = style

    def join(self, x0: int, y0: int, x1: int, y1: int, style: str) -> None:
        length = max(abs(x1 - x0), abs(y1 - y0), 1)
        for index in range(length + 1):
            self.dot(x0 + (x1 - x0) * index // length, y0 + (y1 - y0) * index // length, style)

    def stroke(self, column: tuple[int, int, int] | None, style: str) -> None:
        """Draw dot column ``x`` from ``top`` to ``bottom``; None draws nothing."""
        if column is not None:
            x, top, bottom = column
            for y in range(top, bottom + 1):
                self.dot(x, y, style)

    def mark(self, x: int, y: int, character: str, style: str) -> None:
        self.marks[y >> 2, x >> 1] = character
        self.styles[y >> 2][x >> 1] = style

    def row(self, y: int) -> Styled:
        """Return row ``y``, neighbouring cells of one style in one piece."""
        out, run, run_style = Styled(), "", ""
        for x in range(self.width):
            character = self.marks.get((y, x)) or (chr(0x2800 + self.bits[y][x]) if self.bits[y][x] else " ")
            style = run_style if character == " " else self.styles[y][x]
            if style != run_style:
                out.append(run, run_style)
                run, run_style = "", style
            run += character
        out.append(run, run_style)
        return out


class Scale(NamedTuple):
    """Maps values onto ``0 .. cells - 1``; logarithmic where asked and every value is positive."""

    low: float
    high: float
    is_log: bool = False

    def places(self, values: Sequence[float], cells: int) -> list[int | None]:
        """Return the place of each value; None for one that is not finite. Values outside come to the edge."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.is_log else (self.low, self.high)
        last = cells - 1
        if self.is_log:
            values = [_log10(value, low) for value in values]
        if high <= low:
            return [last // 2 if math.isfinite(value) else None for value in values]
        factor = last / (high - low)
        return [
            min(last, max(0, int((value - low) * factor + 0.5))) if math.isfinite(value) else None
            for value in values
        ]


def _log10(value: float, lowest: float) -> float:
    """Return the logarithm; what has none comes to the lower edge, what is not finite stays so."""
    if not math.isfinite(value):
        return value
    return math.log10(value) if value > 0 else lowest


def scale_of(values: Sequence[float], is_log: bool = False) -> Scale | None:
    """Return a scale for the finite ones of ``values``; None when there is none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    positive = [value for value in finite if value > 0]
    if is_log and positive:
        return Scale(min(positive), max(positive), True)
    return Scale(min(finite), max(finite))


def chart(
    lines: Sequence[Line], width: int, height: int, title: Styled, is_log: bool = False, empty: str = ""
) -> list[Styled]:
    """Return ``height`` rows of at most ``width`` columns: title, curves with their extremes, steps.

    ``empty`` is said where no curve has a finite value.
    """
    title = title.copy()
    title.truncate(width, overflow="ellipsis")
    rows_for_curves = height - 2
    columns = width - AXIS_WIDTH - 1
    y_scale = scale_of([value for line in lines for value in line.values], is_log)
    x_scale = scale_of([step for line in lines for step in line.steps])
    if y_scale is None or x_scale is None or rows_for_curves < 1 or columns < 4:
        return ([title, Styled(f"  {empty}", "dim")] + [Styled()] * height)[:height]
    canvas = Canvas(columns, rows_for_curves)
    for line in lines:
        _draw(canvas, line, x_scale, y_scale)
    return [title, *_with_axis(canvas, y_scale), _steps_row(x_scale, columns)]


def _draw(canvas: Canvas, line: Line, x_scale: Scale, y_scale: Scale) -> None:
    bottom = canvas.height * 4 - 1
    columns = [x or 0 for x in x_scale.places(line.steps, canvas.width * 2)]
    heights = [None if y is None else bottom - y for y in y_scale.places(line.values, bottom + 1)]
    if line.drawn == "joined":
        _draw_joined(canvas, columns, heights, line.style)
    for x, y in zip(columns, heights, strict=True):
        if y is None:
            canvas.mark(x, 0, "×", "bold red")
        elif line.drawn == "marks":
            canvas.mark(x, y, "◆", line.style)
        elif line.drawn == "dots":
            canvas.dot(x, y, line.style)


def _draw_joined(canvas: Canvas, columns: list[int], heights: list[int | None], style: str) -> None:
    """Draw one joined line. Points of one dot column are one stroke, so a thousand points cost no more than fit."""
    previous: tuple[int, int] | None = None
    stroke: tuple[int, int, int] | None = None
    for x, y in zip(columns, heights, strict=True):
        if y is not None and previous is not None and stroke is not None and x == previous[0]:
            stroke = (x, min(stroke[1], y), max(stroke[2], y))
        else:
            canvas.stroke(stroke, style)
            if y is not None and previous is not None:
                canvas.join(*previous, x, y, style)
            stroke = None if y is None else (x, y, y)
        previous = None if y is None else (x, y)
    canvas.stroke(stroke, style)


def _with_axis(canvas: Canvas, scale: Scale) -> list[Styled]:
    labels = {0: short_number(scale.high), canvas.height - 1: short_number(scale.low)}
    if scale.low == scale.high:
        labels = {canvas.height // 2: short_number(scale.low)}
    edge = "┤" if not scale.is_log else "╢"
    return [
        Styled.assemble(
            (f"{labels.get(y, ''):>{AXIS_WIDTH}}", "dim"),
            (edge if y in labels else "│", "dim"),
            canvas.row(y),
        )
        for y in range(canvas.height)
    ]


def _steps_row(scale: Scale, columns: int) -> Styled:
    first, last = short_number(scale.low), short_number(scale.high)
    gap = columns - display_width(first) - display_width(last)
    return Styled(" " * (AXIS_WIDTH + 1) + (first + " " * gap + last if gap > 0 else last), "dim")


def short_number(value: float) -> str:
    """Return ``value`` in at most 8 columns: ``0.4123``, ``2e-05``, ``12.3k``, ``1.5M``."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    for limit, unit in ((1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e6 if unit == 'M' else 1e3):.4g}{unit}"
    return f"{value:.4g}"


def beside(left: list[Styled], right: list[Styled], left_width: int, gap: int = 1) -> list[Styled]:
    """Put two blocks of rows next to each other, the left one filled to ``left_width`` columns."""
    rows = []
    for index in range(max(len(left), len(right))):
        here = left[index] if index < len(left) else Styled()
        there = right[index] if index < len(right) else Styled()
        rows.append(Styled.assemble(here, " " * max(0, left_width + gap - here.cell_len), there))
    return rows
