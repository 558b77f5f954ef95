"""A screen as a text file: what stands in each cell, and how it looks. Small, readable in a diff, and free of fonts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rich.style import Style
from textual.pilot import Pilot

from doctor.render.layout import display_width

FOLDER = Path(__file__).parent / "pictures"
WRITE = "PICTURES"
"""Set to ``write`` in the environment, the pictures are drawn anew instead of compared."""


def picture(pilot: Pilot[int]) -> str:
    """Return the rows as they stand, then a line for each piece of a row that does not look plain."""
    strips = pilot.app.screen._compositor.render_strips()
    rows, looks = [], []
    for number, strip in enumerate(strips):
        pieces = [(segment.text, _look(segment.style)) for segment in strip if segment.text]
        rows.append("".join(text for text, _ in pieces).rstrip())
        looks += [f"{number:02d} {piece}" for piece in _pieces(pieces)]
    return "\n".join([*rows, "-- how it looks: row, first column, what, text", *looks, ""])


def _pieces(pieces: list[tuple[str, str]]) -> Iterator[str]:
    x = 0
    for look, group in groupby(pieces, key=lambda piece: piece[1]):
        text = "".join(text for text, _ in group)
        if look and (text.strip() or "reverse" in look or "on " in look):
            shown = text.strip() if len(text.strip()) <= 24 else text.strip()[:23] + "…"
            yield f"{x:03d} {look}: {shown}"
        x += display_width(text)


def _look(style: Style | None) -> str:
    """Return the attributes and colours in words; the terminal's own colours are no colours."""
    if style is None:
        return ""
    names = [name for name in ("bold", "dim", "italic", "underline", "reverse") if getattr(style, name)]
    if style.color is not None and style.color.name != "default":
        names.append(style.color.name)
    if style.bgcolor is not None and style.bgcolor.name != "default":
        names.append(f"on {style.bgcolor.name}")
    return " ".join(names)


def hold_against(name: str, drawn: str) -> None:
    """Compare with the picture that is kept, or keep this one."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get(WRITE) == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(drawn, "utf-8")
        return
    assert path.is_file(), (
        f"no picture {name}; look at the screen, then keep it: {WRITE}=write pytest tests/tui/test_pictures.py"
    )
    assert drawn == path.read_text("utf-8")
