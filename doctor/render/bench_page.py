"""A comparison of settings as a page: intervals as a plot, the table, and what each row means. Self-contained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from doctor.bench_records import Comparison, Row
from doctor.bench_variants import CHANGED
from doctor.language import say
from doctor.render.bench_text import beginning, cells, meanings, remainder
from doctor.render.page_parts import STYLE, html_table
from runner.text import t

WIDTH, LEFT, ROW = 640, 130, 26
COLOURS = {"faster": "#3d8f5f", "slower": "#d1662b"}


def bench_page(found: Comparison) -> str:
    """Return the HTML of a comparison."""
    title = say(t("What makes {profile} faster", profile=found.profile))
    return "\n".join([
        f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style></head><body>',
        f"<h1>{escape(title)}</h1>", *_text(beginning(found, 100)), f"<figure>{interval_svg(found.rows)}</figure>", *_table(found),
        *_text(remainder(found, 100)), f"<h2>{escape(say('What the names mean'))}</h2><ul>",
        *(f"<li>{escape(line)}</li>" for line in meanings(found)), "</ul></body></html>",
    ])  # fmt: skip


def _text(lines: Iterator[str]) -> Iterator[str]:
    yield "<pre style='white-space:pre-wrap'>" + escape("\n".join(lines)) + "</pre>"


def _table(found: Comparison) -> Iterator[str]:
    head = [say("setting"), say("speed"), "95 %", say("samples/s"), say("tokens/s"), say("padded"), say("memory"), "CPU", say("loss")]  # fmt: skip
    yield from html_table(
        head, [cells(row) for row in found.rows if row.samples_per_s is not None and row.name != CHANGED]
    )


def interval_svg(rows: list[Row]) -> str:
    """Return each measured row's ratio and interval on a logarithmic axis; the line at 1 is *before*."""
    shown = [row for row in rows if row.speed is not None and row.name != CHANGED]
    ends = [value for row in shown if row.speed for value in (row.speed.ratio, row.speed.low, row.speed.high) if value]  # fmt: skip
    low, high = math.log(min([*ends, 0.8])), math.log(max([*ends, 1.25]))
    height = ROW * (len(shown) + 1) + 10

    def x(value: float) -> float:
        return LEFT + (math.log(value) - low) / (high - low) * (WIDTH - LEFT - 64)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" font-size="12" fill="currentColor">',
        f'<path d="M{x(1):.1f} 4V{height - ROW}" stroke="currentColor" stroke-dasharray="3 3" opacity=".5"/>',
        f'<text x="{x(1):.1f}" y="{height - 8}" text-anchor="middle">x1</text>',
    ]
    for index, row in enumerate(shown):
        parts += _bar(row, 14 + index * ROW, x)
    return "".join([*parts, "</svg>"])


def _bar(row: Row, y: int, x: object) -> Iterator[str]:
    assert row.speed is not None and callable(x), "only measured rows are drawn"
    colour = COLOURS.get(row.verdict, "#888")
    yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>'
    if row.speed.low is not None and row.speed.high is not None:
        begin, end = x(row.speed.low), x(row.speed.high)
        yield f'<path d="M{begin:.1f} {y}H{end:.1f}" stroke="{colour}" stroke-width="3"/>'
    at = x(row.speed.ratio)
    yield f'<circle cx="{at:.1f}" cy="{y}" r="4.5" fill="{colour}"/>'
    yield f'<text x="{WIDTH - 44}" y="{y + 4}">x{row.speed.ratio:.2f}</text>'
