"""Rows that panels are made of: a label and a value, a bar, a reason why something was not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import human_bytes, indent, pad
from doctor.tui.words import one_line
from runner.strings import printable
from runner.text import t

LABEL_WIDTH = 14
NEARLY_FULL = 0.95


def plain(value: Any) -> str:
    """Return a value of an event as text that no terminal takes for a command; ``?`` where there is none."""
    return "?" if value is None else printable(str(value))


def label_row(label: str, value: str, style: str = "") -> Styled:
    return Styled.assemble((pad(label, LABEL_WIDTH), style or "dim"), (value, style))


def bar_row(label: str, value: str, share: float, width: int, is_scarce: bool = False) -> Styled:
    """Return a row with a bar; of what is scarce (memory), a nearly full bar is red and marked."""
    is_full = is_scarce and share > NEARLY_FULL
    row = Styled.assemble((pad(label, LABEL_WIDTH), "dim"), _bar(share, width, "red" if is_full else "green"))
    return row.append(f" {value}" + (" !" if is_full else ""), "bold red" if is_full else "")


def _bar(share: float, width: int, style: str) -> Styled:
    cells = max(6, min(24, width - 40))
    full = round(min(1.0, max(0.0, share)) * cells)
    return Styled.assemble(("█" * full, style), ("░" * (cells - full), "dim"))


def memory_row(label: str, used: float, total: float | None, width: int) -> Styled:
    value = f"{human_bytes(used)} / {human_bytes(total)}"
    return bar_row(label, value, used / total, width, is_scarce=True) if total else label_row(label, value)


def unknown(words: str, width: int) -> Iterator[Styled]:
    """Yield why something is not known."""
    for line in indent(words, width, "? ", "  "):
        yield Styled(line, "magenta")


def unread_rows(unread: Any, names: Mapping[str, str], width: int) -> Iterator[Styled]:
    """Yield what could not be read, values with one reason together; ``names`` are the labels of fields."""
    by_reason: dict[str, list[str]] = {}
    for field, why in unread.items() if isinstance(unread, dict) else ():
        label = names.get(field) or printable(str(field))
        labels = by_reason.setdefault(one_line(why), [])
        if label not in labels:
            labels.append(label)
    for why, labels in by_reason.items():
        yield from unknown(say(t("{name} could not be read: {why}", name=", ".join(labels), why=why)), width)
