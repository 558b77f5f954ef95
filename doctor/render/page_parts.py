"""The parts that every page is made of: a style sheet and tables, as HTML and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

Rows = list[list[str]]

STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
.wide{overflow-x:auto;margin:.5rem 0 1.5rem}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;
border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}th,td:first-child:not(:last-child){overflow-wrap:normal}
th{white-space:nowrap}td+td{min-width:3.5rem}h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:1rem}figure{margin:0}
figcaption{font-weight:600}figcaption span{font-weight:400;margin-left:.8rem;overflow-wrap:anywhere}svg{width:100%;height:auto}small{color:#666}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#444}small{color:#999}}
@media print{body{max-width:none;margin:0;font-size:11px;color:#000;background:#fff}.charts{grid-template-columns:1fr 1fr}
figure,tr{break-inside:avoid}h2{break-after:avoid}.wide{overflow:visible}td,th{border-color:#bbb}}
"""


def markdown_table(head: list[str], rows: Rows) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(map(cell, row)) + " |"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def html_table(head: list[str], rows: Rows) -> Iterator[str]:
    yield '<div class="wide"><table>'
    if any(head):
        yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table></div>"
