"""Two environments held against each other: what differs, grouped by what it means for the result; export from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec
from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.render.layout import indent
from doctor.render.snapshot_compare import headline, uncompared_lines, verdict_words
from doctor.snapshots.meanings import VERDICTS
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.messages import Answered, Differed, Trouble
from doctor.tui.trouble import sentence
from doctor.tui.widgets.difference_rows import difference_rows
from doctor.tui.widgets.item_list import Item, ItemList
from doctor.tui.widgets.rows import Head, wrapped
from runner.strings import printable
from runner.text import t

if TYPE_CHECKING:
    from doctor.snapshots.diff import Diff
    from doctor.snapshots.differences import Difference

_SIGNS = {"will-not-run": "✗", "other-numbers": "!", "same-numbers": "·", "same-bits": "✓"}
_STYLES = {
    "will-not-run": "bold red",
    "other-numbers": "bold yellow",
    "same-numbers": "cyan",
    "same-bits": "green",
}


class DifferenceScreen(BaseScreen):
    """Lies over the list of snapshots."""

    HERE = "snapshots"
    DEFAULT_CSS = """
    DifferenceScreen #groups { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", t("Write to a file").msgid),
        Binding("escape", "leave", t("Back").msgid, key_display="Esc"),
    ]

    def __init__(self, a: str, b: str) -> None:
        super().__init__()
        self._names = (a, b)
        self.found: Diff | None = None
        self._trouble = ""
        self._answer: Styled | None = None

    def body(self) -> ComposeResult:
        yield Head(self._head, id="head")
        yield ItemList(id="groups")

    @property
    def groups(self) -> ItemList:
        return self.query_one("#groups", ItemList)

    def on_mount(self) -> None:
        self.groups.focus()
        self._compare()

    @work(exclusive=True)
    async def _compare(self) -> None:
        source, (a, b) = self.doctor.source, self._names
        try:
            self.post_message(Differed(await in_background(lambda: source.difference(a, b), "difference")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(Differed)
    def _show(self, message: Differed) -> None:
        self.found, self._trouble = message.found, ""
        items = _items(message.found)
        self.groups.unfolded = {item.key for item in items if item.key != "same-bits"}
        self.groups.show_items(items)
        self.query_one("#head", Head).redraw()
        self.refresh_bindings()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._trouble = message.words
        self.query_one("#head", Head).redraw()

    @on(ItemList.Chosen)
    def _toggle(self, message: ItemList.Chosen) -> None:
        self.groups.toggle(message.key)

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        if self._trouble:
            return [Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  ")]
        if self.found is None:
            words = say("reading both, this machine with its packages where it is one of them")
            return [Styled(line, "dim") for line in indent(words, width, "… ", "  ")]
        style = (
            _STYLES[self.found.verdict]
            if self.found.complete or self.found.verdict != "same-bits"
            else "bold magenta"
        )
        rows = [Styled(line, style) for line in indent(headline(_named(self.found)), width, "", "  ")]
        answer = self._answer
        return rows + (
            []
            if answer is None
            else [Styled(line, answer.style) for line in indent(answer.plain, width, "", "  ")]
        )

    # -- acting
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "export":
            return not self.doctor.is_readonly and self.found is not None
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_export(self) -> None:
        if self.found is not None:
            self._export(self.found)

    @work(group="export")
    async def _export(self, found: Diff) -> None:
        source = self.doctor.source
        try:
            path = await in_background(lambda: source.export_difference(found), "export")
        except Exception as error:
            self.post_message(Answered(Styled(f"✗ {sentence(error)}", "bold red")))
        else:
            self.post_message(
                Answered(Styled("✓ " + say(t("written to {file}", file=printable(path))), "bold green"))
            )

    @on(Answered)
    def _note_answer(self, message: Answered) -> None:
        self._answer = message.words
        self.query_one("#head", Head).redraw()


def _named(found: Diff) -> Diff:
    """Return the difference with names for people: this machine's key is ``here``."""
    a, b = (say("this machine") if name == "here" else name for name in (found.a, found.b))
    return msgspec.structs.replace(found, a=a, b=b)


def _items(found: Diff) -> list[Item]:
    groups = [(verdict, [one for one in found.differences if one.verdict == verdict]) for verdict in VERDICTS]
    items = [_group(verdict, rows) for verdict, rows in groups if rows]

    def rest(width: int, unfolded: bool) -> Sequence[Styled]:
        return [row for line in uncompared_lines(found, width) for row in wrapped(line, width, "dim") if line]

    return [*items, Item("rest", rest)]


def _group(verdict: str, differences: Sequence[Difference]) -> Item:
    def rows(width: int, unfolded: bool) -> Sequence[Styled]:
        title = f"{_SIGNS[verdict]} {verdict_words(verdict)} ({len(differences)})"  # type: ignore[arg-type]
        head = Styled.assemble((title, _STYLES[verdict]), ("" if unfolded else "  …", "dim"))
        body = list(difference_rows(differences, width)) if unfolded else []
        return [head, *body, *([Styled()] if unfolded else [])]

    return Item(verdict, rows)
