"""One-line bars whose parts can be clicked: the screens on top, the panes, the keys at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.text import Text as Styled
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Input

from doctor.language import say
from doctor.render.layout import display_width
from doctor.tui.widgets.rows import Head


class Part(NamedTuple):
    """A piece of a bar; ``key`` is what a click on it presses, empty for plain text."""

    key_shown: str
    label: str
    key: str = ""
    style: str = ""


class Bar(Head, can_focus=False):
    """Parts in a row, wrapped onto a further line where they do not fit."""

    GAP = "  "
    """Between two parts."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._spans: list[tuple[int, int, int, str]] = []

    def parts(self) -> Sequence[Part]:
        raise NotImplementedError

    def draw(self, width: int, height: int) -> Sequence[Styled]:
        self._spans.clear()
        rows, x = [Styled()], 0
        for part in self.parts():
            words = f"{part.key_shown} {part.label}" if part.key_shown else part.label
            length = display_width(words)
            if x and x + length > width:
                rows.append(Styled())
                x = 0
            rows[-1].append(part.key_shown, part.style or "bold")
            rows[-1].append(words[len(part.key_shown) :], part.style)
            rows[-1].append(self.GAP)
            self._spans.append((len(rows) - 1, x, x + length, part.key))
            x += length + len(self.GAP)
        return rows

    async def on_click(self, event: events.Click) -> None:
        for row, start, end, key in self._spans:
            if event.y == row and start <= event.x < end and key:
                self.app.simulate_key(key)
                return


def shown_bindings(screen: Screen[Any]) -> list[Binding]:
    """Return one binding for each act that is possible on ``screen`` now and meant to be shown."""
    by_action: dict[str, Binding] = {}
    is_typing = isinstance(screen.focused, Input)
    for active in screen.active_bindings.values():
        takes_key = not is_typing or active.node is screen.focused or active.binding.priority
        if active.binding.show and active.enabled and takes_key:
            by_action.setdefault(active.binding.action, active.binding)
    return list(by_action.values())


LOW_ROWS = 16
"""A lower screen has one row of keys, the help's first: the rest of it is for what is shown."""


class KeyBar(Bar):
    """Every key that does something here, in the user's language; a click presses it."""

    DEFAULT_CSS = """
    KeyBar { dock: bottom; }
    """

    def parts(self) -> Sequence[Part]:
        bindings = shown_bindings(self.screen)
        if self.screen.size.height < LOW_ROWS:
            bindings.sort(key=lambda binding: binding.action != "help")
        return [
            Part(self.app.get_key_display(binding), say(binding.description), binding.key)
            for binding in bindings
        ]

    def draw(self, width: int, height: int) -> Sequence[Styled]:
        rows = super().draw(width, height)
        return rows[:1] if self.screen.size.height < LOW_ROWS else rows

    def on_mount(self) -> None:
        super().on_mount()
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.call_after_refresh(self.redraw))


class NavBar(Bar):
    """The screens and which one this is."""

    GAP = ""

    def __init__(self, here: str) -> None:
        super().__init__()
        self._here = here

    def parts(self) -> Sequence[Part]:
        names = (
            ("1", "check", say("Machine")),
            ("2", "profiles", say("Profiles")),
            ("3", "runs", say("Runs")),
            ("4", "snapshots", say("Snapshots")),
        )
        parts = [Part("", "doctor ", style="bold")]
        whole = sum(display_width(label) + 4 for _, _, label in names)
        has_room = display_width(parts[0].label) + whole <= self.size.width
        for key, mode, label in names:
            is_here = mode == self._here
            shown = f"[{key} {label}]" if is_here else f" {key} {label} " if has_room else f" {key} "
            parts.append(Part("", shown, key, "bold reverse" if is_here else ""))
        return parts
