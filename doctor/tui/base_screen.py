"""What every screen has: the bar of screens on top, the keys at the bottom, a language changed live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text as Styled
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.timer import Timer

from doctor.render.layout import indent
from doctor.tui.background import in_background
from doctor.tui.clipboard import copied_words, into_tmux
from doctor.tui.widgets.bar import KeyBar, NavBar
from doctor.tui.widgets.rows import Head, Rows
from runner.text import t

if TYPE_CHECKING:
    from doctor.tui.app import DoctorApp

WIDE_COLUMNS = 120
"""From this width on everything stands side by side; below, panes are tabs."""


class BaseScreen(Screen[None]):
    """A full screen between the two bars. All words are drawn by :class:`Rows`: a redraw is a translation."""

    HERE = ""
    """Name in the upper bar."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE_COLUMNS, "-wide")]

    DEFAULT_CSS = """
    BaseScreen { layout: vertical; background: transparent; }
    BaseScreen #told { display: none; }
    BaseScreen.-tells #told { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", t("Copy").msgid, show=False),
    ]

    _said = ""
    _untell: Timer | None = None

    def compose(self) -> ComposeResult:
        yield NavBar(self.HERE)
        yield from self.body()
        yield Head(self._said_rows, id="told")
        yield KeyBar()

    def body(self) -> ComposeResult:
        raise NotImplementedError

    @property
    def doctor(self) -> DoctorApp:
        from doctor.tui.app import DoctorApp

        assert isinstance(self.app, DoctorApp)
        return self.app

    def tell(self, words: str, seconds: float = 5.0) -> None:
        """Show a sentence above the keys for a while."""
        self._said = words
        self.add_class("-tells")
        self.query_one("#told", Head).redraw()
        if self._untell is not None:
            self._untell.stop()
        self._untell = self.set_timer(seconds, lambda: self.remove_class("-tells"))

    def _said_rows(self, width: int, height: int) -> Sequence[Styled]:
        return [Styled(line, "bold") for line in indent(self._said, width, "", "  ")]

    def copied(self) -> str:
        """Return what ``y`` copies: the item under the cursor, or the page that has the keys."""
        focused = self.focused
        return focused.copied if isinstance(focused, Rows) else ""

    def action_copy(self) -> None:
        if text := self.copied():
            self._copy(text)

    @work(group="copy", exclusive=True)
    async def _copy(self, text: str) -> None:
        is_in_tmux = not self.app.is_web and await in_background(lambda: into_tmux(text), "copy")
        if not is_in_tmux:
            self.app.copy_to_clipboard(text)
        self.tell(copied_words(len(text.splitlines()), is_in_tmux))

    def redraw(self) -> None:
        """Draw every row again: after a change of language, or of what is shown."""
        for rows in self.query(Rows):
            rows.redraw()
