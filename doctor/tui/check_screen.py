"""The machine: what is wrong, why, and what to do, root cause first. Shown at once, filled in later."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from doctor.language import say
from doctor.model import t
from doctor.render.headline import environment_line, machine_line
from doctor.render.layout import indent
from doctor.tui.background import in_background
from doctor.tui.filtering import FilteredScreen
from doctor.tui.finding_rows import finding_items, finding_of, summary
from doctor.tui.messages import Examined, Trouble
from doctor.tui.source import Examination
from doctor.tui.trouble import sentence
from doctor.tui.widgets.facts_panel import fact_rows
from doctor.tui.widgets.item_list import Item, ItemList
from doctor.tui.widgets.rows import Head, Rows
from runner.strings import printable

ROOM_FOR_DETAILS_ROWS = 40
"""A screen this high shows every finding unfolded; a lower one only the first, the root cause."""


class CheckScreen(FilteredScreen):
    """Findings of this machine, or of a recorded one."""

    HERE = "check"
    DEFAULT_CSS = """
    CheckScreen #panes { height: 1fr; layout: horizontal; }
    CheckScreen #findings { height: 1fr; width: 5fr; }
    CheckScreen #facts { height: 1fr; width: 3fr; padding-left: 1; }
    CheckScreen.-wide #facts { border-left: solid ansi_bright_black; }
    CheckScreen.-narrow #facts { display: none; }
    CheckScreen.-narrow.-facts #facts { display: block; }
    CheckScreen.-narrow.-facts #findings { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "check", t("Check again").msgid),
        Binding("f", "fix", t("Fix").msgid),
        Binding("d", "deep", t("Deep check").msgid),
        Binding("e", "unfold_all", t("Unfold all").msgid),
        Binding("tab", "facts", t("Facts").msgid, key_display="Tab"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.examination: Examination | None = None
        self._trouble = ""
        self._is_checking = False
        self._deep_since: float | None = None
        """Monotonic seconds at which the deep check began; None: none is on its way."""

    def body(self) -> ComposeResult:
        yield Head(self._head, id="head")
        with Container(id="panes"):
            yield ItemList(id="findings")
            yield Rows(self._facts, id="facts")

    @property
    def findings(self) -> ItemList:
        return self.query_one("#findings", ItemList)

    @property
    def items_shown(self) -> ItemList:
        return self.findings

    def on_mount(self) -> None:
        self.findings.focus()
        self.set_interval(1.0, self._tick)
        self.action_check()

    def action_check(self) -> None:
        """Look again, unless a look is on its way."""
        if not self._is_checking and self._deep_since is None:
            self._is_checking = True
            self.query_one("#head", Rows).redraw()
            self._examine()

    @work(exclusive=True)
    async def _examine(self) -> None:
        try:
            self.post_message(Examined(await in_background(self.doctor.source.examine, "check")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    # -- acting
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("fix", "deep"):
            return not self.doctor.is_readonly and self.examination is not None
        return super().check_action(action, parameters)

    def action_fix(self) -> None:
        """Show what can be done about the finding under the cursor."""
        if self.examination is not None and not self._is_checking and self._deep_since is None:
            finding = finding_of(self.examination.report, self.findings.current_key)
            if finding is not None:
                self.doctor.open_fix(self.examination, finding.id, finding.subject)

    def action_deep(self) -> None:
        """Use torch for real, unless a look is on its way: it takes a minute at most."""
        if self.examination is not None and not self._is_checking and self._deep_since is None:
            self._deep_since = time.monotonic()
            self._look_deeply(self.examination)
            self.query_one("#head", Rows).redraw()

    @work(group="deep")
    async def _look_deeply(self, examination: Examination) -> None:
        source = self.doctor.source
        try:
            found = await in_background(lambda: source.examine_deeply(examination), "deep")
        except Exception as error:
            self.post_message(Trouble(sentence(error)))
        else:
            self.post_message(Examined(found))

    def _tick(self) -> None:
        if self._deep_since is not None:
            self.query_one("#head", Rows).redraw()

    @on(Examined)
    def _show(self, message: Examined) -> None:
        first_look = self.examination is None
        self._deep_since = None
        self.refresh_bindings()
        self._is_checking, self._trouble, self.examination = False, "", message.examination
        items = finding_items(message.examination)
        if first_look:
            self._unfold_first(items)
        self.findings.show_items(items)
        self.redraw()

    def _unfold_first(self, items: Sequence[Item]) -> None:
        """Unfold what there is room for, the root cause in any case; what passed stays one line."""
        has_room = self.size.height >= ROOM_FOR_DETAILS_ROWS
        for item in items if has_room else items[:1]:
            if item.key != "passed":
                self.findings.unfolded.add(item.key)

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_checking, self._deep_since, self._trouble = False, None, message.words
        self.redraw()

    @on(ItemList.Chosen)
    def _toggle(self, message: ItemList.Chosen) -> None:
        self.findings.toggle(message.key)

    def action_facts(self) -> None:
        """Move between findings and facts; on a narrow screen one takes the other's place."""
        shown = self.toggle_class("-facts").has_class("-facts")
        self.query_one("#facts" if shown else "#findings").focus()
        self.call_after_refresh(self.redraw)

    def _facts(self, width: int, height: int) -> Sequence[Styled]:
        return [] if self.examination is None else fact_rows(self.examination.snapshot, width)

    def action_unfold_all(self) -> None:
        """Unfold every item, or fold all when all are unfolded."""
        keys = {item.key for item in self.findings.items}
        self.findings.unfolded = set() if self.findings.unfolded >= keys else keys
        self.findings.redraw()

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        rows: list[Styled] = []
        if self._trouble:
            rows += [Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  ")]
        if self.examination is not None:
            rows += self._headlines(self.examination, width)
        if self._is_checking:
            rows.append(Styled("… " + say("looking at this machine"), "bold"))
        if self._deep_since is not None:
            seconds = round(time.monotonic() - self._deep_since)
            words = say(t("using torch for real: {seconds} s so far, at most a minute", seconds=seconds))
            rows += [Styled(line, "bold") for line in indent(words, width, "… ", "  ")]
        return rows

    def _headlines(self, examination: Examination, width: int) -> list[Styled]:
        lines = indent(environment_line(examination.snapshot), width, "", "  ")
        lines += indent(machine_line(examination.snapshot), width, "", "  ")
        if examination.recorded:
            recorded = say(t("Recorded machine: {file}", file=printable(examination.recorded)))
            lines += indent(recorded, width, "", "  ")
        return [*(Styled(line) for line in lines), summary(examination.report)]
