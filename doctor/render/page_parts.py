"""The parts that every page is made of: a style sheet and tables, as HTML and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

Rows = list[list[str]]

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}td,th{text-align:left;padding:.2rem .6rem;
border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}figure{margin:0}
figcaption{font-weight:600}svg{width:100%;height:auto}small{color:#666}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#444}small{color:#999}}
"""


def markdown_table(head: list[str], rows: Rows) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(map(cell, row)) + " |"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def html_table(head: list[str], rows: Rows) -> Iterator[str]:
    yield "<table>"
    if any(head):
        yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table>"
