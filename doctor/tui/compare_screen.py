"""Two runs side by side: what ``doctor report A B`` prints, read in the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.render.layout import indent
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.messages import LinesRead, Trouble
from doctor.tui.trouble import sentence
from doctor.tui.widgets.rows import Rows
from runner.text import t


class CompareScreen(BaseScreen):
    """Lies over the list of runs."""

    HERE = "runs"
    DEFAULT_CSS = """
    CompareScreen #lines { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", t("Back").msgid, key_display="Esc"),
    ]

    def __init__(self, a: str, b: str) -> None:
        super().__init__()
        self._names = (a, b)
        self._lines: Sequence[str] | None = None
        self._trouble = ""
        self._width = 0

    def body(self) -> ComposeResult:
        yield Rows(self._rows, id="lines")

    def on_mount(self) -> None:
        self.query_one("#lines").focus()

    def on_resize(self, event: events.Resize) -> None:
        """The page is laid out for a width: read again for another."""
        if event.size.width != self._width:
            self._width = event.size.width
            self._read(max(40, self._width - 3))

    def redraw(self) -> None:
        super().redraw()
        if self._width and self._lines is not None:
            self._read(max(40, self._width - 3))  # in the other language

    @work(exclusive=True)
    async def _read(self, width: int) -> None:
        source, (a, b) = self.doctor.source, self._names
        try:
            lines = await in_background(lambda: source.compare(a, b, width), "compare")
        except Exception as error:
            self.post_message(Trouble(sentence(error)))
        else:
            self.post_message(LinesRead("", lines))

    @on(LinesRead)
    def _show(self, message: LinesRead) -> None:
        self._lines, self._trouble = message.lines, ""
        self.query_one("#lines", Rows).redraw()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._trouble = message.words
        self.query_one("#lines", Rows).redraw()

    def _rows(self, width: int, height: int) -> Sequence[Styled]:
        if self._trouble:
            return [Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  ")]
        if self._lines is None:
            return [Styled("… " + say("reading both runs whole"), "dim")]
        return [Styled(line, "" if line.startswith(" ") else "bold") for line in self._lines]

    def action_leave(self) -> None:
        self.app.pop_screen()
