"""A list narrowed down to the items that hold some words: ``/`` asks for them, as in less and k9s; Escape shows all again."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rich.text import Text as Styled
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from doctor.language import say
from doctor.tui.base_screen import BaseScreen
from doctor.tui.widgets.item_list import ItemList
from doctor.tui.widgets.rows import Head
from runner.text import t


class Words(Input):
    """The field that is typed into."""

    # Keys that change who is typed to come first: on a slow line what follows them arrives with them.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "keep", t("Keep").msgid, key_display="⏎", priority=True),
        Binding("escape", "screen.unfilter", t("Show all").msgid, key_display="Esc", priority=True),
    ]

    def action_keep(self) -> None:
        screen = self.screen
        assert isinstance(screen, FilteredScreen)
        screen.set_focus(screen.items_shown)


class FilteredScreen(BaseScreen):
    """A screen with one list."""

    DEFAULT_CSS = """
    FilteredScreen #filter { height: 1; display: none; }
    FilteredScreen #filter Head { width: 2; }
    FilteredScreen Words { width: 1fr; border: none; padding: 0; height: 1; background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", t("Filter").msgid, key_display="/", priority=True),
        Binding("escape", "unfilter", t("Show all").msgid, key_display="Esc"),
    ]

    @property
    @abstractmethod
    def items_shown(self) -> ItemList:
        """The list."""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        with Horizontal(id="filter"):
            yield Head(lambda width, height: [Styled("/", "bold")])
            field = Words(compact=True, select_on_focus=False)
            field.cursor_blink = False  # each blink would be sent over a slow line
            yield field

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter":
            is_typing = isinstance(self.focused, Words)
            return self.is_mounted and not is_typing and self.items_shown.count_of_all > 1
        if action == "unfilter":
            return self.is_mounted and self.query_one("#filter").display
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        """Ask for words; what is typed counts at once."""
        self.query_one("#filter").display = True
        field = self.query_one(Words)
        field.placeholder = say("words that stand in what you look for")
        self.set_focus(field)  # at once: the next key may be here already

    def action_unfilter(self) -> None:
        self.query_one("#filter").display = False
        self.query_one(Words).value = ""
        self.items_shown.narrow("")
        self.set_focus(self.items_shown)

    @on(Input.Changed)
    def _narrow(self, message: Input.Changed) -> None:
        if isinstance(message.input, Words):
            self.items_shown.narrow(message.value)
