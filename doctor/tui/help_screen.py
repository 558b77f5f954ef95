"""Every key, every sign, and what leaving does and does not do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.render.layout import indent, pad
from doctor.tui.base_screen import WIDE_COLUMNS, BaseScreen
from doctor.tui.help_keys import key_sections
from doctor.tui.widgets.plot import beside
from doctor.tui.widgets.rows import Rows
from doctor.tui.words import LEVEL_STYLES, STATUS_STYLES, level_label, status_label
from runner.text import t

_KEY = 12
_SIGN = 18


class HelpScreen(BaseScreen):
    """Help; any of the keys that opened it closes it."""

    HERE = "help"
    DEFAULT_CSS = """
    HelpScreen #help { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,h,q", "close", t("Close help").msgid, key_display="Esc"),
    ]

    def body(self) -> ComposeResult:
        yield Rows(lambda width, height: list(self._rows(width)), id="help")

    def on_mount(self) -> None:
        self.query_one("#help").focus()

    def action_close(self) -> None:
        self.app.pop_screen()

    def _rows(self, width: int) -> Iterator[Styled]:
        intro = say(
            "Leaving never ends a run: it has a process of its own, and any SSH session can watch it again."
        )
        yield from (Styled(line, "bold") for line in indent(intro, width, "", ""))
        if self.doctor.is_readonly:
            words = say("Read-only: the keys that start, stop, change or write something are switched off.")
            yield from (Styled(line, "bold yellow") for line in indent(words, width, "", ""))
        is_wide = width >= WIDE_COLUMNS - 4
        column = (width - 3) // 2 if is_wide else width
        enter = "Enter" if self.doctor.is_ascii else "⏎"
        blocks = [_section(title, [(key.replace("⏎", enter), words) for key, words in keys], column)
                  for title, keys in key_sections(self.doctor.is_readonly)]  # fmt: skip
        blocks.append(list(_signs(column)))
        yield from _side_by_side(blocks, column) if is_wide else (row for block in blocks for row in block)


def _side_by_side(blocks: Sequence[list[Styled]], width: int) -> list[Styled]:
    """Return the blocks in two columns, in order, the first one filled to about half."""
    total, left, right = sum(len(block) for block in blocks), list[Styled](), list[Styled]()
    for block in blocks:
        (left if not right and len(left) + len(block) // 2 <= total // 2 else right).extend(block)
    return beside(left, right, width, gap=3)


def _section(title: str, keys: Sequence[tuple[str, str]], width: int) -> list[Styled]:
    rows = [Styled(), Styled(title, "bold underline")]
    for key, words in keys:
        first, *rest = indent(words, width, " " * _KEY, " " * _KEY)
        rows.append(Styled.assemble((pad(key, _KEY), "bold"), first[_KEY:]))
        rows += [Styled(line) for line in rest]
    return rows


def _signs(width: int) -> Iterator[Styled]:
    yield Styled()
    yield Styled(say("Signs"), "bold underline")
    levels = {
        "fail": say("a run would fail or go wrong"),
        "warn": say("it costs time, money or trust"),
        "note": say("good to know"),
        "unknown": say("could not look: neither good nor bad"),
    }
    for level, meaning in levels.items():
        yield from _sign(level_label(level), LEVEL_STYLES[level], meaning, width)
    states = {
        "running": say("events keep coming"),
        "stalled": say("alive, but nothing was written for a minute"),
        "stopped": say("saved on request; can be resumed"),
        "completed": say("all planned steps are done"),
        "non-finite": say("NaN or infinity; the run ended itself"),
        "lost": say("the process is gone and left no word"),
    }
    for status, meaning in states.items():
        yield from _sign(status_label(status), STATUS_STYLES[status], meaning, width)


def _sign(label: str, style: str, meaning: str, width: int) -> Iterator[Styled]:
    first, *rest = indent(meaning, width, " " * _SIGN, " " * _SIGN)
    yield Styled.assemble((pad(label, _SIGN), style), first[_SIGN:])
    yield from (Styled(line) for line in rest)
