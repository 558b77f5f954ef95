"""The processes of one training: what they do together, who is slow, and a row each under titles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import display_width, indent
from doctor.render.rank_text import RANKS_SHOWN, attention_lines, together_line
from doctor.tui.view import RunView
from doctor.tui.widgets.plot import short_number
from runner.events import number, rows
from runner.strings import printable
from runner.text import t

_GAP = 2


def rank_rows(view: RunView, width: int) -> Iterator[Styled]:
    """Yield the block; nothing where one process trains alone."""
    if not view.ranks:
        return
    yield Styled.assemble((say("Ranks"), "bold"), "  ", together_line(view.ranks))
    for words in attention_lines(view.ranks):
        yield from (Styled(line, "yellow") for line in indent("! " + words, width, "", "  "))
    told = rows(view.ranks.get("ranks"))
    slowest = (view.ranks.get("slowest") or {}).get("rank")
    lines = [_cells(row) for row in told[:RANKS_SHOWN]]
    titles = (say("rank"), say("step"), say("tokens/s"), say("seconds a step"), say("its own work"), "")
    sizes = [max(display_width(cell) for cell in column) for column in zip(titles, *lines, strict=True)]
    yield Styled(_line(titles, sizes), "dim")
    for row, cells in zip(told, lines, strict=False):
        yield Styled(_line(cells, sizes), "yellow" if row["rank"] == slowest else "")
    if len(told) > RANKS_SHOWN:
        yield Styled(say(t("... and {count} more", count=len(told) - RANKS_SHOWN)), "dim")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    values = [number(row.get(key)) for key in ("tokens_per_s", "step_seconds", "own_seconds")]
    rate, step_s, own_s = ("?" if value is None else short_number(value) for value in values)
    return str(row["rank"]), str(row["step"]), rate, step_s, own_s, printable(str(row.get("outcome") or ""))


def _line(cells: tuple[str, ...], sizes: list[int]) -> str:
    """Return numbers to the right, the last cell (how it ended) to the left."""
    *numbers, outcome = cells
    padded = [" " * (size - display_width(cell)) + cell for cell, size in zip(numbers, sizes, strict=False)]
    return (" " * _GAP).join([*padded, outcome]).rstrip()
