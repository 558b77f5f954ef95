"""Stopping and resuming a run: asked first, done in the background, answered in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text as Styled
from textual import work
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.tui.background import in_background
from doctor.tui.confirm_screen import ConfirmScreen
from doctor.tui.messages import Answered
from doctor.tui.time_travel import TimeTravel
from doctor.tui.trouble import sentence
from doctor.tui.view import RunView
from runner.strings import printable
from runner.text import t

REFUSED = "cannot continue to the bit here"
"""So begins the trainer's refusal where ``--approximate`` would let it go on."""


class RunActs(TimeTravel):
    """A run's panes, and the run stopped or gone on with."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stop", t("Stop").msgid),
        Binding("r,R", "resume", t("Resume").msgid),
        Binding("A", "approximate", t("Resume approximately").msgid),
    ]
    run_name: str
    live: RunView | None
    """The run as it is; None: not read yet."""

    @property
    def _shown_name(self) -> str:
        return self.live.name if self.live else self.run_name

    def may_act(self, action: str) -> bool:
        """Return whether the run can be stopped or resumed now."""
        if self.doctor.is_readonly or (self.live is not None and not self.live.is_ours):
            return False
        if action == "stop":
            return self.live is None or not self.live.is_over
        if self.live is None or not self.live.is_over or not can_resume(self.live.status):
            return False
        return action == "resume" or was_refused_to_the_bit(self.live)

    def action_stop(self) -> None:
        name = printable(self._shown_name)
        question = say(
            t("Stop {name}? It finishes its step, saves and leaves; it can be resumed.", name=name)
        )
        self.app.push_screen(ConfirmScreen(question, say("Stop the run")), self._stop_if)

    def _stop_if(self, is_confirmed: bool | None) -> None:
        if is_confirmed:
            self._act(lambda: self.doctor.source.stop(self.run_name), stop_answer)

    def action_resume(self) -> None:
        question = resume_question(self._shown_name)
        self.app.push_screen(ConfirmScreen(question, say("Resume the run")), self._resume_if)

    def action_approximate(self) -> None:
        """Go on although something differs from the conditions it was begun under."""
        question = say(
            t("Go on with {name} although it cannot go on to the bit? What differs is written down with the run, and its numbers "
              "may be others than those of an unbroken run.", name=printable(self._shown_name))
        )  # fmt: skip
        self.app.push_screen(
            ConfirmScreen(question, say("Resume approximately")), lambda is_yes: self._resume_if(is_yes, True)
        )

    def _resume_if(self, is_confirmed: bool | None, approximate: bool = False) -> None:
        if is_confirmed:
            self._act(lambda: self.doctor.source.resume(self.run_name, approximate), resume_answer)

    @work
    async def _act(self, act: Callable[[], None], answer: Callable[[str], Styled]) -> None:
        """Do what may wait, then show ``answer`` of what stood in its way ("" where nothing did)."""
        try:
            await in_background(act, "act")
        except Exception as error:
            self.post_message(Answered(answer(sentence(error))))
        else:
            self.post_message(Answered(answer("")))


def can_resume(status: str) -> bool:
    """Return whether a run with this status may have steps left and nobody who trains them."""
    return status in ("stopped", "interrupted", "failed", "non-finite", "lost")


def was_refused_to_the_bit(view: RunView) -> bool:
    """Return whether the last attempt to resume ended because conditions differ: see :mod:`runner.exactness`."""
    error = view.finished.get("error_text")
    return isinstance(error, dict) and str(error.get("msgid", "")).startswith(REFUSED)


def resume_question(name: str) -> str:
    return say(t("Go on with {name} from its last checkpoint?", name=printable(name)))


def stop_answer(trouble: str) -> Styled:
    if trouble:
        return Styled("✗ " + say(t("it could not be stopped: {why}", why=trouble)), "bold red")
    return Styled("■ " + say("asked to stop: it saves and leaves at the end of its step"), "bold")


def resume_answer(trouble: str) -> Styled:
    if trouble:
        return Styled("✗ " + say(t("it could not be resumed: {why}", why=trouble)), "bold red")
    return Styled("▶ " + say("resumed: it loads its checkpoint and goes on"), "bold")
