"""Environments as lines: where, which Python, which torch, and the worst that is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.language import say
from doctor.model import t
from doctor.render.layout import display_width, pad, paint
from doctor.render.text import level_word
from runner.strings import printable, shown

if TYPE_CHECKING:
    from doctor.environments import EnvironmentList, EnvironmentVerdict

MAX_COLUMN = 48
TITLE_COLUMNS = 70


def environment_lines(found: EnvironmentList, colour: bool) -> list[str]:
    """Return one line for each environment, columns aligned; ``*`` marks the one that `doctor check`
    judges."""
    rows = [(item, _cells(item)) for item in found.items]
    if not rows:
        return [say("no Python environment was found")]
    widths = [min(MAX_COLUMN, max(display_width(cells[at]) for _item, cells in rows)) for at in range(4)]
    return [_line(item, cells, widths, colour) for item, cells in rows]


def _cells(item: EnvironmentVerdict) -> tuple[str, str, str, str]:
    kind = item.kind + (f", {say('tool')}" if item.is_tool else "")
    named = ", ".join(name for name in item.found_by if name.startswith("kernel "))
    return (
        ("* " if item.is_current else "  ") + printable(item.prefix),
        item.version or "?",
        kind + (f" ({printable(named)})" if named else ""),
        _torch(item),
    )


def _torch(item: EnvironmentVerdict) -> str:
    if not item.torch:
        return say("no torch") if item.torch_status == "absent" else "torch ?"
    build = " CPU" if item.torch_cuda == "" and "+" not in item.torch else ""
    return f"torch {printable(item.torch)}{build}"


def _line(item: EnvironmentVerdict, cells: tuple[str, str, str, str], widths: list[int], colour: bool) -> str:
    start = "  ".join(pad(cell, width) for cell, width in zip(cells, widths, strict=True))
    if item.title is None:
        return f"{start}  {paint(say('nothing found'), 'good', colour)}"
    more = say(t(" (and {count} more)", count=item.others)) if item.others else ""
    return f"{start}  {paint(level_word(item.level), item.level, colour)}  {_short(say(item.title))}{more}"


def _short(title: str) -> str:
    """Return the title's first ``TITLE_COLUMNS`` columns; ``doctor check --python`` has the rest."""
    line = shown(" ".join(title.split()))
    while display_width(line) > TITLE_COLUMNS:
        line = line[: -max(2, (display_width(line) - TITLE_COLUMNS) // 2 + 1)] + "…"
    return line
