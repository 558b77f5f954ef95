"""The time of a run as a bar: where in it the screen is; a click goes there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.text import Text as Styled
from textual import events

from doctor.language import say
from doctor.tui.widgets.log_panel import clock
from doctor.tui.widgets.rows import Head


class Time(NamedTuple):
    """What the bar shows, in seconds since the epoch; ``at`` None: now."""

    first: float
    last: float
    at: float | None = None
    speed: int = 0
    """Seconds a second, while it plays; 0: it stands."""
    is_reading: bool = False
    """What was written by then is still being read; the panes show the moment before."""

    @property
    def share(self) -> float:
        return 1.0 if self.at is None else (self.at - self.first) / (self.last - self.first)


class TimeBar(Head, can_focus=False):
    """``read`` gives the time, None where there is none to show; ``go`` is told where a click fell, as a time."""

    def __init__(self, read: Callable[[], Time | None], go: Callable[[float | None], None]) -> None:
        super().__init__(id="time-bar")
        self._read, self._go = read, go
        self._begin, self._cells = 0, 1

    def show_time(self) -> None:
        """Draw anew; gone where there is no time to show."""
        is_shown = self._read() is not None
        if self.display != is_shown:
            self.display = is_shown  # laid out first; the new size draws it
        self.redraw()

    def draw(self, width: int, height: int) -> Sequence[Styled]:
        time = self._read()
        if time is None:
            return ()
        here = clock((time.last if time.at is None else time.at) - time.first)
        end = clock(time.last - time.first)
        speed = (f" ▶ ×{time.speed}" if time.speed else "") + (
            f" … {say('reading')}" if time.is_reading else ""
        )
        head, tail = f"{here:>9} ├", f"┤ {end}{speed}"
        self._begin, self._cells = len(head), max(4, width - len(head) - len(tail))
        place = round(time.share * (self._cells - 1))
        return [
            Styled.assemble(
                (head, "bold" if time.at is not None else ""), "─" * place, ("●", "bold"),
                ("─" * (self._cells - 1 - place), "dim"), (tail, "dim" if not speed else "bold"),
            )
        ]  # fmt: skip

    async def on_click(self, event: events.Click) -> None:
        time, cell = self._read(), event.x - self._begin
        if time is not None and 0 <= cell < self._cells:
            is_end = cell == self._cells - 1
            self._go(None if is_end else time.first + (time.last - time.first) * cell / (self._cells - 1))
