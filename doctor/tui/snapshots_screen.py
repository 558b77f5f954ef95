"""Environments as files: those in this folder, those that ship with the doctor, this machine as a new one, two compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import events, on, work
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.render.text import printable_text
from doctor.tui.background import in_background
from doctor.tui.list_screen import ListScreen, indented, named_rows
from doctor.tui.messages import Answered, LinesRead
from doctor.tui.source import SnapshotRow
from doctor.tui.trouble import sentence
from doctor.tui.widgets.item_list import Item
from doctor.tui.widgets.rows import wrapped
from runner.strings import printable
from runner.text import t


class SnapshotsScreen(ListScreen[SnapshotRow]):
    """A list of snapshot files, of this machine as it is now, and of what runs were trained on."""

    HERE = "snapshots"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", t("Export this machine").msgid),
        Binding("m", "mark", t("Mark").msgid),
        Binding("d", "diff", t("Difference").msgid),
        Binding("r", "list", t("List again").msgid),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, Sequence[str]] = {}
        """What is in a snapshot, of those that were opened."""
        self.marked = ""
        """Key of the snapshot that others are compared with."""
        self._is_exporting = False
        self._reading: set[str] = set()

    # -- the list
    def read_rows(self) -> Sequence[SnapshotRow]:
        return self.doctor.source.snapshots()

    def item_of(self, row: SnapshotRow) -> Item:
        name = ("* " if row.key == self.marked else "") + printable(row.name)
        origin = {"shipped": say("shipped"), "here": say("now"), "run": say("a run")}.get(
            row.origin, say("this folder")
        )

        def rows(width: int, unfolded: bool) -> Sequence[Styled]:
            about = f"{origin}  {printable_text(row.label)}".rstrip()
            return named_rows(name, about, width, [one.name for one in self.rows or ()])

        return Item(row.key, rows)

    def about(self, width: int) -> Sequence[Styled]:
        words, style = self._words()
        return indented(Styled(words, style), width)

    def _words(self) -> tuple[str, str]:
        if self._is_exporting:
            return "… " + say("reading this machine and its packages"), "bold"
        if self.rows is None:
            return "… " + say("looking for snapshots"), "dim"
        marked = next((row.name for row in self.rows if row.key == self.marked), "")
        if marked:
            return say(
                t("* {name} is marked: on another one, d shows what differs", name=printable(marked))
            ), "bold"
        words = t("snapshots: {count}; m marks one, d on another shows what differs", count=len(self.rows))
        return say(words), "dim"

    # -- what a snapshot holds
    def look_at(self, key: str) -> None:
        if key not in self.lines and key not in self._reading:
            self._reading.add(key)
            self._read(key)

    def on_resize(self, event: events.Resize) -> None:
        self._forget()  # laid out for another width

    def redraw(self) -> None:
        self._forget()  # written in the language of before
        super().redraw()

    def _forget(self) -> None:
        self.lines.clear()
        beside = {self.listed.current_key} if self.has_page_beside else set()
        for key in (self.listed.unfolded | beside) - {""}:
            self.look_at(key)

    @work(group="read")
    async def _read(self, key: str) -> None:
        width = self.size.width * 3 // 5 - 6 if self.has_page_beside else max(40, self.size.width - 8)
        source = self.doctor.source
        lines: Sequence[str]
        try:
            lines = await in_background(lambda: source.snapshot_lines(key, width), "snapshot")
        except Exception as error:
            lines = [f"✗ {sentence(error)}"]
        self.post_message(LinesRead(key, lines))

    @on(LinesRead)
    def _show_lines(self, message: LinesRead) -> None:
        self._reading.discard(message.key)
        self.lines[message.key] = message.lines
        self.show_page()

    def page(self, key: str, width: int, height: int = 0) -> Sequence[Styled]:
        lines = self.lines.get(key, ("… " + say("reading"),))
        return [row for line in lines for row in wrapped(printable_text(line), width)]

    # -- acting
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "export":
            return not self.doctor.is_readonly
        if action == "diff":
            return bool(self.marked) and self.marked != self.listed.current_key
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        """Mark the snapshot under the cursor; marked already, it loses its mark."""
        key = self.listed.current_key
        self.marked = "" if key == self.marked else key
        self.show_rows()

    def action_diff(self) -> None:
        """Hold the marked snapshot against the one under the cursor."""
        self.doctor.open_difference(self.marked, self.listed.current_key)

    def action_export(self) -> None:
        if not self._is_exporting:
            self._is_exporting, self.answer = True, None
            self.redraw_head()
            self._export()

    @work(group="export")
    async def _export(self) -> None:
        try:
            path = await in_background(self.doctor.source.export_snapshot, "export")
        except Exception as error:
            self.post_message(Answered(Styled(f"✗ {sentence(error)}", "bold red")))
        else:
            words = say(t("written to {file}", file=printable(path)))
            self.post_message(Answered(Styled(f"✓ {words}", "bold green")))

    @on(Answered)
    def _note_answer(self, message: Answered) -> None:
        self._is_exporting, self.answer = False, message.words
        self.redraw_head()
        self.action_list()
