"""Two runs side by side: text for the terminal, Markdown to paste, HTML that needs no network, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from doctor.language import current_language, say
from doctor.render.compare_rows import charts, colours_of, names, proof_remarks, remarks, sections
from doctor.render.curve_svg import chart
from doctor.render.layout import display_width, pad
from doctor.render.page_parts import STYLE, Rows, cell, html_table, markdown_table
from doctor.render.run_text import cut, figure
from doctor.render.sparkline import sparkline
from runner.events import finite_or_name

if TYPE_CHECKING:
    from doctor.comparison import Comparison

ENVIRONMENT_ROWS = 60
NARROWEST = 10
"""No column is cut to less."""


def as_text(found: Comparison, width: int, unicode: bool) -> str:
    """Return the tables in columns, the curves as one line each, then the remarks."""
    lines: list[str] = []
    for title, head, rows in sections(found):
        if rows:
            lines += ["", title, *_columns([head, *rows], width)]
    drawn = [(title, curves) for title, curves in charts(found) if any(len(curve) > 1 for _, curve in curves)]
    for title, curves in drawn:
        lines += ["", title]
        label = min(34, max(display_width(name) for name, _ in curves))
        for name, curve in curves:
            if curve.values:
                line = sparkline(curve.values, max(10, min(60, width - label - 26)), unicode)
                lines.append(
                    f"  {pad(name, label)}  {line}  {figure(curve.values[0])} … {figure(curve.values[-1])}"
                )
    return "\n".join([*lines[1:], "", *remarks(found)]) + "\n"


def _columns(rows: Rows, width: int) -> Iterator[str]:
    """Yield rows in aligned columns; where the terminal is narrow the widest are cut."""
    widths = [max(display_width(row[index]) for row in rows) for index in range(len(rows[0]))]
    while sum(widths) + 2 * len(widths) > width and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    for row in rows:
        cells = (pad(cut(text, size), size) for text, size in zip(row, widths, strict=True))
        yield "  " + "  ".join(cells).rstrip()


def as_markdown(found: Comparison) -> str:
    one, other = names(found)
    lines = [f"# {cell(one)} / {cell(other)}"]
    for title, head, rows in sections(found):
        if rows:
            lines += ["", f"## {title}", "", *markdown_table(head, rows)]
    return "\n".join([*lines, "", *(f"- {cell(line)}" for line in remarks(found))]) + "\n"


def as_html(found: Comparison) -> str:
    """Return one file: style and curves inside, nothing fetched, every name escaped."""
    title = escape(" / ".join(names(found)))
    parts = [
        f'<!doctype html><html lang="{"zh-CN" if current_language() == "zh" else "en"}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{escape(line)}</p>" for line in remarks(found)),
        '<div class="charts">',
        *(chart(name, curves, colours_of(found, curves)) for name, curves in charts(found)),
        "</div>",
    ]
    for heading, head, rows in sections(found):
        if rows:
            parts += [f"<h2>{escape(heading)}</h2>", *html_table(head, rows)]
    return "\n".join([*parts, "<p><small>rundoctor</small></p></body></html>"]) + "\n"


def as_json(found: Comparison) -> str:
    one, other = found.a, found.b
    tree: dict[str, Any] = {
        "a": {"run": one.name, "status": one.status, "digest": one.plan.digest if one.plan else None},
        "b": {"run": other.name, "status": other.status, "digest": other.plan.digest if other.plan else None},
        "results": {pair.name: {"a": pair.a, "b": pair.b, "change": pair.change} for pair in found.results},
        "settings": {pair.name: {"a": pair.a, "b": pair.b} for pair in found.settings},
        "settings_not_compared": {run: say(why) for run, why in found.settings_why},
        "environment": msgspec.to_builtins(found.environment) if found.environment else None,
        "environment_not_compared": {run: say(why) for run, why in found.environment_why},
        "same_loss_until": found.same_loss_until,
        "script_changes": list(found.script_changes),
        "weighed": [asdict(one) | {"is_more_than_chance": one.is_more_than_chance} for one in found.weighed],
        "proofs": list(proof_remarks(found)),
        "curves": {
            title: {name: {"step": curve.steps, "value": curve.values} for name, curve in curves}
            for title, curves in charts(found)
        },
    }
    return json.dumps(finite_or_name(tree), indent=1) + "\n"
