"""A run as a page: HTML that needs no network, Markdown to paste, JSON for other tools."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from doctor.language import current_language, say
from doctor.render.curve_svg import chart
from doctor.render.page_parts import STYLE, cell, html_table, markdown_table
from doctor.render.run_page_rows import (
    curve_rows,
    curves_of,
    decision_rows,
    environment_lines,
    sections,
    summary_rows,
)
from runner.events import finite_or_name
from runner.state import state_as_dict
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.run_page import Page


def as_json(page: Page) -> str:
    tree: dict[str, Any] = {
        "run": page.name,
        "state": state_as_dict(page.state, page.now) | {"status": page.status},
        "evaluations": [{"step": event.step, **event.data} for event in page.state.evaluations],
        "curves": {
            title: {name: {"step": curve.steps, "value": curve.values} for name, curve in curves}
            for title, curves in curves_of(page)
        },
        "decisions": decision_rows(page),
        "digest": page.plan.digest if page.plan else None,
        "proof": {"sha256": page.proof.sha256, "level": page.proof.level, "steps": page.proof.steps}
        if page.proof
        else None,
        "unread": {name: say(why) for name, why in page.unread.items()},
    }
    return json.dumps(finite_or_name(tree), indent=1) + "\n"


def as_markdown(page: Page) -> str:
    lines = [f"# {cell(printable(page.name))}", "", *markdown_table(["", ""], summary_rows(page))]
    lines += ["", *(f"- {cell(line)}" for line in environment_lines(page))]
    curves = (
        say("Curves"),
        ["", say("first"), say("last"), say("lowest"), say("highest"), ""],
        curve_rows(page),
    )
    for title, head, rows in [curves, *sections(page)]:
        if rows:
            lines += ["", f"## {title}", "", *markdown_table(head, rows)]
    return "\n".join(lines) + "\n"


def as_html(page: Page) -> str:
    """Return one file: style and curves inside, nothing fetched, every name escaped."""
    name = escape(printable(page.name))
    parts = [
        f'<!doctype html><html lang="{"zh-CN" if current_language() == "zh" else "en"}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{name}</title><style>{STYLE}</style></head><body><h1>{name}</h1>",
        *(f"<p><small>{escape(line)}</small></p>" for line in environment_lines(page)),
        *html_table([], summary_rows(page)),
        '<div class="charts">',
        *(chart(title, curves) for title, curves in curves_of(page)),
        "</div>",
    ]
    for title, head, rows in sections(page):
        if rows:
            parts += [f"<h2>{escape(title)}</h2>", *html_table(head, rows)]
    parts.append("<p><small>rundoctor</small></p></body></html>\n")
    return "\n".join(parts)
