"""Environments as files: those in this folder, those that ship with the doctor, and this machine as a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.render.layout import indent, pad
from doctor.render.text import printable_text
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.messages import Answered, LinesRead, SnapshotsListed, Trouble
from doctor.tui.source import SnapshotRow
from doctor.tui.trouble import sentence
from doctor.tui.widgets.item_list import Item, ItemList
from doctor.tui.widgets.rows import Rows
from runner.strings import printable
from runner.text import t

_NAME = 36


class SnapshotsScreen(BaseScreen):
    """A list of snapshot files."""

    HERE = "snapshots"
    DEFAULT_CSS = """
    SnapshotsScreen #head { height: 1; }
    SnapshotsScreen #snapshots { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", t("Export this machine").msgid),
        Binding("r", "list", t("List again").msgid),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[SnapshotRow] | None = None
        self.lines: dict[str, Sequence[str]] = {}
        """What is in a snapshot, of those that were opened."""
        self._answer: Styled | None = None
        self._is_exporting = False

    def body(self) -> ComposeResult:
        head = Rows(self._head, id="head")
        head.fit_height, head.can_focus = True, False
        yield head
        yield ItemList(id="snapshots")

    @property
    def listed(self) -> ItemList:
        return self.query_one("#snapshots", ItemList)

    def on_mount(self) -> None:
        self.listed.focus()
        self.action_list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "export":
            return not self.doctor.is_readonly
        return super().check_action(action, parameters)

    def action_list(self) -> None:
        self._list()

    @work(group="list", exclusive=True)
    async def _list(self) -> None:
        try:
            self.post_message(SnapshotsListed(await in_background(self.doctor.source.snapshots, "snapshots")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(SnapshotsListed)
    def _show(self, message: SnapshotsListed) -> None:
        self.rows = message.rows
        self.listed.show_items([self._item(row) for row in message.rows])
        self.query_one("#head", Rows).redraw()

    def redraw(self) -> None:
        self.lines.clear()  # written in the language of before
        for key in self.listed.unfolded:
            self._read(key)
        super().redraw()

    @on(ItemList.Chosen)
    def _unfold(self, message: ItemList.Chosen) -> None:
        if message.key not in self.lines:
            self._read(message.key)
        self.listed.toggle(message.key)

    @work(group="read")
    async def _read(self, key: str) -> None:
        source, width = self.doctor.source, max(40, self.size.width - 6)
        lines: Sequence[str]
        try:
            lines = await in_background(lambda: source.snapshot_lines(key, width), "snapshot")
        except Exception as error:
            lines = [f"✗ {sentence(error)}"]
        self.post_message(LinesRead(key, lines))

    @on(LinesRead)
    def _show_lines(self, message: LinesRead) -> None:
        self.lines[message.key] = message.lines
        self.listed.redraw()

    def action_export(self) -> None:
        if not self._is_exporting:
            self._is_exporting, self._answer = True, None
            self.query_one("#head", Rows).redraw()
            self._export()

    @work(group="export")
    async def _export(self) -> None:
        try:
            path = await in_background(self.doctor.source.export_snapshot, "export")
        except Exception as error:
            self.post_message(Trouble(sentence(error)))
        else:
            words = say(t("written to {file}", file=printable(path)))
            self.post_message(Answered(Styled(f"✓ {words}", "bold green")))

    @on(Answered)
    def _note_answer(self, message: Answered) -> None:
        self._is_exporting, self._answer = False, message.words
        self.query_one("#head", Rows).redraw()
        self.action_list()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_exporting, self._answer = False, Styled(f"✗ {message.words}", "bold red")
        self.query_one("#head", Rows).redraw()

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        rows: list[Styled] = []
        if self._answer is not None:
            rows += [Styled(line, self._answer.style) for line in indent(self._answer.plain, width, "", "  ")]
        if self._is_exporting:
            rows.append(Styled("… " + say("reading this machine and its packages"), "bold"))
        elif self.rows is None:
            rows.append(Styled("… " + say("looking for snapshots"), "dim"))
        else:
            words = say(
                t("snapshots: {count}; `doctor snapshot diff A B` compares two", count=len(self.rows))
            )
            rows += [Styled(line, "dim") for line in indent(words, width, "", "")]
        return rows

    def _item(self, row: SnapshotRow) -> Item:
        def rows(width: int, unfolded: bool) -> Sequence[Styled]:
            origin = say("shipped") if row.is_shipped else say("this folder")
            words = f"{origin}  {printable_text(row.label)}".rstrip()
            first, *rest = indent(words, max(20, width - _NAME - 2), "", "")
            out = [Styled.assemble((pad(printable(row.name), _NAME) + "  ", "bold"), first)]
            out += [Styled(" " * (_NAME + 2) + line) for line in rest]
            if unfolded:
                lines = self.lines.get(row.key, ("… " + say("reading"),))
                out += [Styled("  " + printable_text(line)) for line in lines]
                out.append(Styled())
            return out

        return Item(row.key, rows)
