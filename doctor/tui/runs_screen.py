"""The runs there are, newest first; Enter watches one, live or replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.model import t
from doctor.render.layout import display_width, human_seconds, indent, pad
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.messages import RunsListed, Trouble
from doctor.tui.source import RunRow
from doctor.tui.trouble import sentence
from doctor.tui.widgets.item_list import Item, ItemList
from doctor.tui.widgets.plot import short_number
from doctor.tui.widgets.rows import Rows
from doctor.tui.words import STATUS_STYLES, status_label
from runner.strings import printable

LIST_EVERY_S = 5.0


class RunsScreen(BaseScreen):
    """A list of runs with what each is doing."""

    HERE = "runs"
    DEFAULT_CSS = """
    RunsScreen #head { height: 1; }
    RunsScreen #runs { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mark", t("Mark").msgid),
        Binding("c", "compare", t("Compare").msgid),
        Binding("r", "list", t("List again").msgid),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[RunRow] | None = None
        self.marked = ""
        """Key of the run that others are compared with."""
        self._trouble = ""
        self._is_listing = False

    def body(self) -> ComposeResult:
        head = Rows(self._head, id="head")
        head.fit_height, head.can_focus = True, False
        yield head
        yield ItemList(id="runs")

    def on_mount(self) -> None:
        self.query_one("#runs").focus()
        self.set_interval(LIST_EVERY_S, self.action_list)

    def on_screen_resume(self) -> None:
        self.action_list()

    def action_list(self) -> None:
        if not self._is_listing and self.is_current:
            self._is_listing = True
            self._list()

    @work(exclusive=True)
    async def _list(self) -> None:
        try:
            self.post_message(RunsListed(await in_background(self.doctor.source.runs, "runs")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(RunsListed)
    def _show(self, message: RunsListed) -> None:
        self._is_listing, self._trouble, self.rows = False, "", message.rows
        self._show_rows()

    def _show_rows(self) -> None:
        items = [_item(row, row.key == self.marked) for row in self.rows or ()]
        self.query_one("#runs", ItemList).show_items(items)
        self.query_one("#head", Rows).redraw()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "compare":
            return bool(self.marked)
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        """Mark the run under the cursor; marked already, it loses its mark."""
        key = self.query_one("#runs", ItemList).current_key
        self.marked = "" if key == self.marked else key
        self._show_rows()

    def action_compare(self) -> None:
        """Hold the marked run against the one under the cursor."""
        key = self.query_one("#runs", ItemList).current_key
        if self.marked and key and key != self.marked:
            self.doctor.open_comparison(self.marked, key)

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_listing, self._trouble = False, message.words
        self.query_one("#head", Rows).redraw()

    @on(ItemList.Chosen)
    def _watch(self, message: ItemList.Chosen) -> None:
        self.doctor.open_run(message.key)

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        if self._trouble:
            return [Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  ")]
        if self.rows is None:
            return [Styled("… " + say("looking for runs"), "dim")]
        if not self.rows:
            words = say("no run here yet: pick a profile (2), or `doctor run PROFILE`")
            return [Styled(line) for line in indent(words, width, "", "")]
        marked = next((row.name for row in self.rows if row.key == self.marked), "")
        if marked:
            words = say(t("* {name} is marked: on another run, c compares the two", name=printable(marked)))
            return [Styled(line, "bold") for line in indent(words, width, "", "")]
        return [Styled(say(t("runs: {count}, newest first", count=len(self.rows))), "dim")]


def _item(row: RunRow, is_marked: bool = False) -> Item:
    def rows(width: int, unfolded: bool) -> Sequence[Styled]:
        label = Styled(pad(status_label(row.status), 18), STATUS_STYLES.get(row.status, "bold"))
        name = ("* " if is_marked else "") + printable(row.name)
        progress = f"{row.step}/{row.steps_total if row.steps_total is not None else '?'}"
        out = Styled.assemble(label, (pad(name, min(44, max(20, width - 40))), "bold"), "  " + progress)
        for words in _extras(row):
            if out.cell_len + 2 + display_width(words) <= width:
                out.append("  " + words, "dim")
        return [out]

    return Item(row.key, rows)


def _extras(row: RunRow) -> Iterator[str]:
    yield from (f"{printable(name)} {short_number(value)}" for name, value in row.metrics.items())
    if row.seconds is not None:
        yield human_seconds(row.seconds)
