"""Rows of text that scroll and repaint only where they changed: what every panel, bar and list is made of.

A slow SSH line pays for each repainted cell; a redraw that gives the same rows sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text as Styled
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from doctor.render.layout import display_width

Draw = Callable[[int, int], Sequence[Styled]]
"""(width, height) in cells -> rows. Rows longer than the width are cut, more rows than the height scroll."""


class Rows(ScrollView, can_focus=True):
    """Shows what ``draw(width, height)`` returns; :meth:`redraw` asks again."""

    DEFAULT_CSS = """
    Rows {
        overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
        background: transparent;
        scrollbar-color: ansi_bright_black; scrollbar-color-hover: ansi_bright_black; scrollbar-color-active: ansi_default;
        scrollbar-background: ansi_default; scrollbar-background-hover: ansi_default; scrollbar-background-active: ansi_default;
    }
    """

    class Counted(Message):
        """There are more rows, or fewer, than there were."""

    def __init__(
        self,
        draw: Draw | None = None,
        *,
        id: str | None = None,  # noqa: A002 - textual's own name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._draw = draw
        self._strips: list[Strip] = []
        self.rows: list[Styled] = []
        self.follow_end = False
        """Keep the last row in view while the reader has not scrolled up (a log)."""
        self._is_at_end = True

    fit_height = False
    """Be as high as there are rows."""

    def draw(self, width: int, height: int) -> Sequence[Styled]:
        return self._draw(width, height) if self._draw else ()

    def redraw(self) -> None:
        """Draw again and repaint the rows that differ."""
        width, height = self.scrollable_content_region.size
        if width <= 0 or height <= 0 or not self.is_attached:
            return
        self.rows = list(self.draw(width, height))
        fresh = [self._strip(row) for row in self.rows]
        previous, self._strips = self._strips, fresh
        if len(fresh) != self.virtual_size.height or width != self.virtual_size.width:
            self.virtual_size = Size(width, len(fresh))
        self._repaint(previous, fresh)
        if len(fresh) != len(previous):
            self.post_message(self.Counted())
        if self.fit_height and len(fresh) != height:
            self.styles.height = max(1, len(fresh))
        if self.follow_end and self._is_at_end:
            self.call_after_refresh(self.scroll_end, animate=False)

    def _repaint(self, previous: list[Strip], fresh: list[Strip]) -> None:
        for y in range(max(len(previous), len(fresh))):
            same = y < len(previous) and y < len(fresh) and previous[y] == fresh[y]
            if not same:
                self.refresh_line(y)

    def _strip(self, row: Styled) -> Strip:
        # assemble: a Text without spans renders without its own style
        return Strip(Styled.assemble(row).render(self.app.console), row.cell_len)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(0)
        return strip.adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._is_at_end = new_value >= self.max_scroll_y

    def on_resize(self, event: events.Resize) -> None:
        self.redraw()

    def on_mount(self) -> None:
        super().on_mount()  # type: ignore[no-untyped-call]
        self.call_after_refresh(self.redraw)

    @property
    def text(self) -> str:
        """What the rows say, without styles."""
        return "\n".join(row.plain for row in self.rows)

    @property
    def copied(self) -> str:
        """What a person who copies this gets."""
        return "\n".join(row.plain.rstrip() for row in self.rows)


class Picture(Rows):
    """Rows made to measure: never more than fit, so no column is kept for a scroll bar."""

    DEFAULT_CSS = """
    Picture { overflow-y: hidden; scrollbar-gutter: auto; }
    """


class Head(Picture, can_focus=False):
    """Rows above others, as many as there is to say; no key goes there."""

    DEFAULT_CSS = """
    Head { height: 1; }
    """
    fit_height = True


def wrapped(line: str, width: int, style: str = "") -> list[Styled]:
    """Return a laid-out line in as many rows as it takes: a command that is cut off cannot be typed."""
    rows, row, room = [], "", max(1, width)
    for character in line:
        columns = display_width(character)
        if columns > room:
            rows.append(Styled(row, style))
            row, room = "", max(1, width)
        row, room = row + character, room - columns
    return [*rows, Styled(row, style)]
