"""What every screen has: the bar of screens on top, the keys at the bottom, a language changed live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.screen import Screen

from doctor.tui.widgets.bar import KeyBar, NavBar
from doctor.tui.widgets.rows import Rows

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
    """

    def compose(self) -> ComposeResult:
        yield NavBar(self.HERE)
        yield from self.body()
        yield KeyBar()

    def body(self) -> ComposeResult:
        raise NotImplementedError

    @property
    def doctor(self) -> DoctorApp:
        from doctor.tui.app import DoctorApp

        assert isinstance(self.app, DoctorApp)
        return self.app

    def redraw(self) -> None:
        """Draw every row again: after a change of language, or of what is shown."""
        for rows in self.query(Rows):
            rows.redraw()
