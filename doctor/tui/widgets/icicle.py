"""Stacks as an icicle: each row one call deeper, each piece as wide as its share of the time. Readable without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.text import Text as Styled

from doctor.render.layout import display_width, pad
from runner.events import number
from runner.strings import printable

DEEPEST = 200
"""Deeper than any stack that is kept: an events file may hold anything."""
ALWAYS = 0.995
"""A call that is on nearly every look and calls one thing only adds nothing: its name goes into the head."""


class Node(NamedTuple):
    depth: int
    function: str
    share: float


class Piece(NamedTuple):
    """A function at its place in a row, in cells."""

    start: int
    cells: int
    words: str


def icicle(nodes: Sequence[Any], width: int) -> Iterator[Styled]:
    """Yield the rows for ``nodes`` as :func:`doctor.call_tree.call_trees` gives them."""
    tree = [node for node in map(_node, nodes) if node is not None]
    trunk = _trunk(tree)
    if trunk:
        yield Styled(_cut(" › ".join(node.function for node in tree[:trunk]), width), "dim")
    for depth, row in enumerate(_rows(tree[trunk:], trunk, width)):
        yield _drawn(row, "reverse" if depth % 2 == 0 else "")


def _node(raw: Any) -> Node | None:
    share = number(raw[4]) if isinstance(raw, list) and len(raw) == 5 and isinstance(raw[0], int) else None
    if share is None or not 0.0 <= share <= 1.0 or not 0 <= raw[0] <= DEEPEST:
        return None
    return Node(raw[0], printable(str(raw[1])), share)


def _trunk(tree: Sequence[Node]) -> int:
    """Return how many calls every look has in common; the last of them is left to be drawn."""
    length = 0
    while (
        length + 1 < len(tree) and tree[length + 1].depth == length + 1 and tree[length + 1].share >= ALWAYS
    ):
        length += 1
    return length


def _rows(tree: Sequence[Node], trunk: int, width: int) -> list[list[Piece]]:
    rows: list[list[Piece]] = []
    ends: dict[int, float] = {}
    """Where the next child at a depth begins, as a share."""
    for node in tree:
        depth = max(0, node.depth - trunk)
        start = ends.get(depth, 0.0)
        ends[depth] = start + node.share
        ends[depth + 1] = start
        first, last = round(start * width), round((start + node.share) * width)
        while len(rows) <= depth:
            rows.append([])
        if last > first:
            rows[depth].append(Piece(first, last - first, f"{node.function} {node.share:.0%}"))
    return [row for row in rows if row]


def _drawn(row: Sequence[Piece], style: str) -> Styled:
    out, x = Styled(), 0
    for piece in row:
        out.append(" " * (piece.start - x))
        words = _cut(piece.words, piece.cells - 1)
        out.append("▏" + pad(words, piece.cells - 1) if piece.cells > 1 else "▏", style)
        x = piece.start + piece.cells
    return out


def _cut(words: str, cells: int) -> str:
    if display_width(words) <= cells:
        return words
    while words and display_width(words) > cells - 1:
        words = words[:-1]
    return words + "…" if cells > 1 else ""
