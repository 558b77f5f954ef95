"""The runs there are, newest first; Enter watches one, live or replayed, two are compared, one that stopped is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.model import t
from doctor.render.layout import indent
from doctor.tui.background import in_background
from doctor.tui.confirm_screen import ConfirmScreen
from doctor.tui.list_screen import ListScreen, indented
from doctor.tui.messages import Answered, Glanced
from doctor.tui.run_acts import can_resume, resume_answer, resume_question
from doctor.tui.source import RunRow
from doctor.tui.trouble import sentence
from doctor.tui.view import RunView, look_at
from doctor.tui.widgets.curves import loss_rows
from doctor.tui.widgets.item_list import Item
from doctor.tui.widgets.machine_panel import machine_rows
from doctor.tui.widgets.run_head import head_rows
from doctor.tui.widgets.run_table import ORDERS, RunTable, in_order, metric_of
from runner.strings import printable

LIST_EVERY_S = 5.0
CHART_ROWS = 14


class RunsScreen(ListScreen[RunRow]):
    """A list of runs with what each is doing; on a wide screen the run under the cursor at a glance beside it."""

    HERE = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mark", t("Mark").msgid),
        Binding("c", "compare", t("Compare").msgid),
        Binding("R", "resume", t("Resume").msgid),
        Binding("S", "order", t("Sort").msgid),
        Binding("r", "list", t("List again").msgid),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.marked = ""
        """Key of the run that others are compared with."""
        self._glances: dict[str, RunView | str] = {}
        """What was seen of a run, or why it could not be."""
        self._outdated: set[str] = set()
        """Keys of glances that are shown until the run has been looked at again."""
        self._glancing = ""
        self._order = 0
        self._table = RunTable((), 0.0)

    # -- the list
    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(LIST_EVERY_S, self.action_list)

    def on_screen_resume(self) -> None:
        self.action_list()

    def action_list(self) -> None:
        if self.is_current:
            super().action_list()

    def read_rows(self) -> Sequence[RunRow]:
        return self.doctor.source.runs()

    def show_rows(self) -> None:
        for row in self.rows or ():  # what still changes is looked at again
            seen = self._glances.get(row.key)
            if isinstance(seen, RunView) and (seen.step, seen.status) != (row.step, row.status):
                self._outdated.add(row.key)
        self.rows = in_order(self.rows or (), ORDERS[self._order])
        self._table = RunTable(self.rows, self.doctor.clock(), self.marked)
        super().show_rows()

    def item_of(self, row: RunRow) -> Item:
        return Item(row.key, lambda width, unfolded: [self._table.line(row, width)])

    def open_item(self, key: str) -> None:
        self.doctor.open_run(key)

    def about(self, width: int) -> Sequence[Styled]:
        words, style = self._words()
        said = indented(Styled(words, style), width)
        columns = self.listed.scrollable_content_region.width - 2
        return [*said, self._table.header(columns)] if self.rows and columns > 0 else said

    def _words(self) -> tuple[str, str]:
        if self.rows is None:
            return "… " + say("looking for runs"), "dim"
        if not self.rows:
            return say("no run here yet: pick a profile (2), or `doctor run PROFILE`"), ""
        marked = next((row.name for row in self.rows if row.key == self.marked), "")
        if marked:
            return say(
                t("* {name} is marked: on another run, c compares the two", name=printable(marked))
            ), "bold"
        order = {
            "newest": say("newest first"),
            "status": say("by status: what runs, then what went wrong"),
            "metric": say(t("best {metric} first", metric=printable(metric_of(self.rows)) or "?")),
            "loss": say("lowest loss first"),
            "name": say("by name"),
        }[ORDERS[self._order]]
        return say(t("runs: {count}, {order}", count=len(self.rows), order=order)), "dim"

    # -- a run at a glance
    def look_at(self, key: str) -> None:
        is_known = key in self._glances and key not in self._outdated
        if self.has_page_beside and not is_known and key != self._glancing:
            self._glancing = key
            self._glance(key)

    @work(group="glance", exclusive=True)
    async def _glance(self, key: str) -> None:
        source, now = self.doctor.source, self.doctor.clock()
        seen: RunView | str
        try:
            seen = await in_background(lambda: look_at(source.watch(key), now, is_first=True), "glance")
        except Exception as error:
            seen = sentence(error)
        self.post_message(Glanced(key, seen))

    @on(Glanced)
    def _show_glance(self, message: Glanced) -> None:
        self._glances[message.key] = message.seen
        self._outdated.discard(message.key)
        self._glancing = ""
        self.show_page()

    def page(self, key: str, width: int, height: int = 0) -> Sequence[Styled]:
        seen = self._glances.get(key)
        if seen is None:
            return [Styled("… " + say("reading"), "dim")]
        if isinstance(seen, str):
            return [Styled(line, "bold red") for line in indent(seen, width, "✗ ", "  ")]
        chart = max(CHART_ROWS, height // 3)
        return [
            *head_rows(seen, width),
            Styled(),
            *loss_rows(seen, width, chart),
            Styled(),
            *machine_rows(seen, width),
        ]

    # -- acting
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "compare":
            return bool(self.marked) and self.marked != self.listed.current_key
        if action in ("mark", "order"):
            return bool(self.rows)
        if action == "resume":
            row = self._current
            return row is not None and not self.doctor.is_readonly and can_resume(row.status)
        return super().check_action(action, parameters)

    @property
    def _current(self) -> RunRow | None:
        key = self.listed.current_key if self.is_mounted else ""
        return next((row for row in self.rows or () if row.key == key), None)

    def action_mark(self) -> None:
        """Mark the run under the cursor; marked already, it loses its mark."""
        key = self.listed.current_key
        self.marked = "" if key == self.marked else key
        self.show_rows()

    def action_order(self) -> None:
        """Put the runs in the next order."""
        self._order = (self._order + 1) % len(ORDERS)
        self.show_rows()

    def action_compare(self) -> None:
        """Hold the marked run against the one under the cursor."""
        self.doctor.open_comparison(self.marked, self.listed.current_key)

    def action_resume(self) -> None:
        row = self._current
        if row is not None:
            self.app.push_screen(
                ConfirmScreen(resume_question(row.name), say("Resume the run")),
                lambda is_yes: self._resume_if(is_yes, row.key),
            )

    def _resume_if(self, is_confirmed: bool | None, key: str) -> None:
        source = self.doctor.source
        if is_confirmed:
            self._act(lambda: source.resume(key))

    @work(group="act")
    async def _act(self, act: Callable[[], None]) -> None:
        try:
            await in_background(act, "act")
        except Exception as error:
            self.post_message(Answered(resume_answer(sentence(error))))
        else:
            self.post_message(Answered(resume_answer("")))

    @on(Answered)
    def _note_answer(self, message: Answered) -> None:
        self.answer = message.words
        self.action_list()
        self.redraw_head()
