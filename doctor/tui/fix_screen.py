"""A finding's cure: the plan step by step, applied after a question, undone by a key, and what became of the findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.confirm_screen import ConfirmScreen
from doctor.tui.fix_rows import FixState, fix_rows
from doctor.tui.fixing import Cured, FixPlan
from doctor.tui.messages import FixDone, FixPlanned, FixTold, Trouble
from doctor.tui.source import Examination
from doctor.tui.trouble import sentence
from doctor.tui.widgets.rows import Rows
from runner.text import t


class FixScreen(BaseScreen):
    """Lies over the machine's screen; what it changed is handed to ``on_examined`` there."""

    HERE = "check"
    DEFAULT_CSS = """
    FixScreen #plan { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", t("Apply").msgid),
        Binding("u", "undo", t("Undo").msgid),
        Binding("escape", "leave", t("Back").msgid, key_display="Esc"),
    ]

    def __init__(self, examination: Examination, finding_id: str, subject: str) -> None:
        super().__init__()
        self.examination = examination
        """Of now: judged again after each act."""
        self.is_changed = False
        self._finding = (finding_id, subject)
        self._plan: FixPlan | None = None
        self._is_planned = False
        self._is_busy = False
        self._cured: Cured | None = None
        self._told: list[str] = []
        self._trouble = ""

    def body(self) -> ComposeResult:
        yield Rows(self._rows, id="plan")

    def on_mount(self) -> None:
        self.query_one("#plan").focus()
        self._make_plan()

    @work(group="fix")
    async def _make_plan(self) -> None:
        source, examination = self.doctor.source, self.examination
        try:
            plan = await in_background(lambda: source.plan_fix(examination, *self._finding), "fix-plan")
        except Exception as error:
            self.post_message(Trouble(sentence(error)))
        else:
            self.post_message(FixPlanned(plan))

    @on(FixPlanned)
    def _show_plan(self, message: FixPlanned) -> None:
        self._plan, self._is_planned = message.plan, True
        self._redraw()

    # -- drawing -------------------------------------------------------------------------
    def _redraw(self) -> None:
        self.query_one("#plan", Rows).redraw()
        self.refresh_bindings()

    def _rows(self, width: int, height: int) -> Sequence[Styled]:
        state = FixState(
            self._is_planned, self._plan, tuple(self._told), self._is_busy, self._cured, self._trouble
        )
        return fix_rows(state, width)

    # -- acting --------------------------------------------------------------------------
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "apply":
            is_open = self._plan is not None and self._plan.can_apply and not self._is_busy
            return is_open and not self.doctor.is_readonly and (self._cured is None or not self._cured.change)
        if action == "undo":
            can_undo = self._cured is not None and bool(self._cured.change) and not self._is_busy
            return can_undo and not self.doctor.is_readonly
        return super().check_action(action, parameters)

    def action_leave(self) -> None:
        self.doctor.close_fix(self)

    def action_apply(self) -> None:
        count = len(self._plan.proposal.fix.steps) if self._plan and self._plan.proposal.fix else 0
        question = say(t("Carry out {count} {count:step|steps} on this machine?", count=count))
        self.app.push_screen(ConfirmScreen(question, say("Apply the fix")), self._apply_if)

    def _apply_if(self, is_confirmed: bool | None) -> None:
        plan, examination, source = self._plan, self.examination, self.doctor.source
        if is_confirmed and plan is not None:
            self._act(lambda: source.apply_fix(examination, plan.proposal, self._tell))

    def action_undo(self) -> None:
        change = self._cured.change if self._cured else ""
        question = say(t("Take change {id} back?", id=change))
        self.app.push_screen(ConfirmScreen(question, say("Undo")), self._undo_if)

    def _undo_if(self, is_confirmed: bool | None) -> None:
        examination, source = self.examination, self.doctor.source
        change = self._cured.change if self._cured else ""
        if is_confirmed and change:
            self._act(lambda: source.undo_fix(examination, change, self._tell))

    def _tell(self, words: str) -> None:
        """From the thread that works."""
        self.post_message(FixTold(words))

    def _act(self, act: Callable[[], Cured]) -> None:
        self._is_busy, self._cured, self._trouble, self._told = True, None, "", []
        self.query_one("#plan", Rows).follow_end = True
        self._redraw()
        self._work(act)

    @work(group="fix")
    async def _work(self, act: Callable[[], Cured]) -> None:
        try:
            cured = await in_background(act, "fix")
        except Exception as error:
            self.post_message(Trouble(sentence(error)))
        else:
            self.post_message(FixDone(cured))

    @on(FixTold)
    def _note(self, message: FixTold) -> None:
        self._told.append(message.words)
        self._redraw()

    @on(FixDone)
    def _finish(self, message: FixDone) -> None:
        self._is_busy, self._cured = False, message.cured
        if message.cured.examination is not None:
            self.examination, self.is_changed = message.cured.examination, True
        self._redraw()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_busy, self._is_planned, self._trouble = False, True, message.words
        self._redraw()
