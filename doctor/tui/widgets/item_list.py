"""A list to walk with arrow keys or the mouse; each item takes as many rows as it needs, and can unfold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text as Styled
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from doctor.language import say
from doctor.render.layout import indent
from doctor.tui.widgets.rows import Rows
from runner.strings import printable
from runner.text import t

CURSOR = "▌"
"""Marks the item that Enter acts on, in the first column of each of its rows: visible without colour."""


_UNWRAPPED = 1000
"""So wide that no sentence is cut in two by the end of a line."""


class Item(NamedTuple):
    """One entry: ``rows(width, unfolded)`` draws it."""

    key: str
    rows: Callable[[int, bool], Sequence[Styled]]


def holds(item: Item, words: Sequence[str]) -> bool:
    """Return whether all ``words`` (in small letters) stand in an item."""
    if not words:
        return True
    text = "\n".join(row.plain for row in item.rows(_UNWRAPPED, True)).lower()
    return all(word in text for word in words)


class ItemList(Rows):
    """Items, a cursor, and which of them are unfolded."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", t("Up").msgid, show=False),
        Binding("down,j", "move(1)", t("Down").msgid, show=False),
        Binding("home,g", "move(-9999)", t("First").msgid, show=False),
        Binding("end,G", "move(9999)", t("Last").msgid, show=False),
        Binding("pageup", "page(-1)", t("Page up").msgid, show=False),
        Binding("pagedown", "page(1)", t("Page down").msgid, show=False),
        Binding("enter", "choose", t("Open").msgid, key_display="⏎"),
    ]

    class Chosen(Message):
        """Enter, or a click on an item."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Moved(Message):
        """An item came under the cursor; ``key`` is empty where there is none."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.items: Sequence[Item] = ()
        """Those that are shown."""
        self.wanted = ""
        """Words that a shown item holds."""
        self._every: Sequence[Item] = ()
        self.unfolded: set[str] = set()
        self.cursor = 0
        self._first_row: list[int] = []

    def show_items(self, items: Sequence[Item]) -> None:
        """Replace the items; the cursor stays on the item with the same key where there still is one."""
        self._every = items
        self._narrow()

    def narrow(self, words: str) -> None:
        """Show only the items that hold all ``words``, folded or unfolded; empty: every one."""
        self.wanted = words
        self._narrow()

    @property
    def count_of_all(self) -> int:
        return len(self._every)

    def _narrow(self) -> None:
        current, wanted = self.current_key, self.wanted.lower().split()
        self.items = [item for item in self._every if holds(item, wanted)]
        keys = [item.key for item in self.items]
        self.cursor = keys.index(current) if current in keys else 0
        self.redraw()
        self.post_message(self.Moved(self.current_key))

    @property
    def current_key(self) -> str:
        return self.items[self.cursor].key if self.items else ""

    @property
    def copied(self) -> str:
        """The item under the cursor, unfolded, as plain text."""
        width = max(20, self.scrollable_content_region.width - 2)
        rows = self.items[self.cursor].rows(width, True) if self.items else ()
        return "\n".join(row.plain.rstrip() for row in rows).rstrip()

    def draw(self, width: int, height: int) -> Sequence[Styled]:
        rows: list[Styled] = []
        self._first_row = []
        if not self.items and self._every:
            words = say(t("nothing here holds “{words}”; Esc shows all", words=printable(self.wanted)))
            rows += [Styled(line, "dim") for line in indent(words, width, "  ", "  ")]
        for index, item in enumerate(self.items):
            self._first_row.append(len(rows))
            mark = f"{CURSOR} " if index == self.cursor else "  "
            rows += [
                Styled.assemble((mark, "bold"), row)
                for row in item.rows(width - 2, item.key in self.unfolded)
            ]
        self._first_row.append(len(rows))
        return rows

    def action_move(self, by: int) -> None:
        if self.items and not self._read_on(by):
            self.cursor = min(max(self.cursor + by, 0), len(self.items) - 1)
            self.redraw()
            self.post_message(self.Moved(self.current_key))
            self._keep_in_view(upwards=by < 0)

    def action_page(self, by: int) -> None:
        """Go on by what is seen, the cursor with it: Enter must open what one looks at."""
        if not self.items or not self._is_laid_out:
            return
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        first, end = self._first_row[self.cursor], self._first_row[self.cursor + 1]
        if (by > 0 and end > top + height) or (by < 0 and first < top):  # an item longer than the view
            self.scroll_to(y=top + by * height, animate=False)
            return
        wanted = max(first + height, end) if by > 0 else first - height
        there = bisect_right(self._first_row, min(max(wanted, 0), self._first_row[-1] - 1)) - 1
        if there != self.cursor:
            self.action_move(there - self.cursor)

    def _read_on(self, by: int) -> bool:
        """Scroll instead of moving while the item under the cursor goes on outside the view."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if not self._is_laid_out:
            return False
        if by == 1 and self._first_row[self.cursor + 1] > top + height:
            self.scroll_to(
                y=min(top + max(1, height // 2), self._first_row[self.cursor + 1] - height), animate=False
            )
            return True
        if by == -1 and self._first_row[self.cursor] < top < self._first_row[self.cursor + 1]:
            self.scroll_to(y=max(top - max(1, height // 2), self._first_row[self.cursor]), animate=False)
            return True
        return False

    @property
    def _is_laid_out(self) -> bool:
        """Whether it was drawn with these items: a list without a column or a row never is."""
        return len(self._first_row) == len(self.items) + 1

    def _keep_in_view(self, upwards: bool) -> None:
        if not self._is_laid_out:
            return
        first, end = self._first_row[self.cursor], self._first_row[self.cursor + 1]
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if first < top or (end > top + height and end - first >= height):
            self.scroll_to(y=first, animate=False)
        elif end > top + height:
            self.scroll_to(y=end - height, animate=False)

    def action_choose(self) -> None:
        if self.items:
            self.post_message(self.Chosen(self.current_key))

    def toggle(self, key: str) -> None:
        """Unfold an item, or fold it again."""
        self.unfolded ^= {key}
        self.redraw()
        self._keep_in_view(upwards=False)

    def on_click(self, event: events.Click) -> None:
        row = event.y + self.scroll_offset.y
        for index in range(len(self.items) if self._is_laid_out else 0):
            if self._first_row[index] <= row < self._first_row[index + 1]:
                self.cursor = index
                self.redraw()
                self.post_message(self.Moved(self.current_key))
                self.action_choose()
                return
