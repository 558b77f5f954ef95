"""Fixes asked of ``service`` for the screens: the plan made whole before it is shown, applied, undone, and judged again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from doctor import service
from doctor.language import say
from doctor.tui.source import Examination, Refused
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.cure import Proposal, Turn
    from doctor.journal import Journal
    from doctor.model import Change, Step

Tell = Callable[[str], None]
"""Called, from the thread that works, with each thing that happens, in words."""


class FixPlan(NamedTuple):
    """A finding's cure with everything that its screen shows, read beforehand: drawing reads no disk."""

    proposal: Proposal
    previews: tuple[tuple[str, ...], ...] = ()
    """The exact commands or difference of each step."""
    ways_back: tuple[Text | None, ...] = ()
    """Why a step cannot be undone; None: it can."""
    is_done_already: bool = False
    """New shells have all that it would set."""

    @property
    def can_apply(self) -> bool:
        return self.proposal.fix is not None and not self.is_done_already


class Cured(NamedTuple):
    """What became of a fix or an undo."""

    outcome: str
    """done, failed, stopped, stuck, undone, not-undone."""
    change: str = ""
    """What an undo takes back; empty: nothing stands."""
    why: Text | None = None
    turns: tuple[Turn, ...] = ()
    examination: Examination | None = None
    """The machine judged again; None: nothing was changed."""


class Cure:
    """The fixes of one machine. Remembers which variables it has set: this session has not read them."""

    def __init__(self) -> None:
        self._variables: dict[str, str | None] = {}
        self._undoable: dict[str, Proposal] = {}

    def plan(self, examination: Examination, finding_id: str, subject: str) -> FixPlan | None:
        """Return the plan for a finding; None where nobody can do anything about it here."""
        name = f"{finding_id}:{subject}" if subject else finding_id
        found = service.plan_fix(examination.snapshot, examination.report, [name])
        proposal = next((one for one in found if one.finding.subject == subject), None)
        if proposal is None:
            return None
        steps = proposal.fix.steps if proposal.fix else ()
        return FixPlan(
            proposal,
            tuple(tuple(service.preview_step(step, live=not examination.recorded)) for step in steps),
            tuple(service.way_back(step) for step in steps),
            proposal.fix is not None and service.is_done_already(proposal.fix),
        )

    def apply(self, examination: Examination, proposal: Proposal, tell: Tell) -> Cured:
        """Carry out a fix that the person has agreed to. Raises Refused where an earlier change was cut off."""
        from doctor.render.fix_text import step_words

        fix = proposal.fix
        assert fix is not None
        with service.change_machine(lambda pid: tell(_waiting(pid))) as journal:
            _refuse_half_done(journal)

            def told(number: int, step: Step, what: str, why: Text | None) -> None:
                tell(step_line(number, step_words(step), what, why))

            applied = service.apply_fix(journal, fix, lambda number, step: True, told)
        if not applied.done:
            return Cured(applied.outcome, applied.change if applied.outcome == "stuck" else "", applied.error)
        self._variables |= applied.variables
        self._undoable[applied.change] = proposal
        snapshot, report, turns = service.check_again(
            examination.snapshot, examination.report, fix, self._variables
        )
        fresh = Examination(snapshot, report, examination.recorded)
        return Cured(applied.outcome, applied.change, applied.error, tuple(turns), fresh)

    def undo(self, examination: Examination, change: str, tell: Tell) -> Cured:
        """Take a change back and judge what it touched again."""
        from doctor.render.fix_text import step_words

        with service.change_machine(lambda pid: tell(_waiting(pid))) as journal:
            why = service.undo(
                journal,
                change,
                lambda number, step, what, why: tell(step_line(number, step_words(step), what, why)),
            )
        if why is not None:
            return Cured("not-undone", change, why)
        proposal = self._undoable.pop(change, None)
        if proposal is None or proposal.fix is None:
            return Cured("undone")
        self._forget_variables(proposal)
        snapshot, report, turns = service.check_again(
            examination.snapshot, examination.report, proposal.fix, self._variables
        )
        return Cured("undone", "", None, tuple(turns), Examination(snapshot, report, examination.recorded))

    def _forget_variables(self, proposal: Proposal) -> None:
        from doctor.model import SetVariable

        for step in proposal.fix.steps if proposal.fix else ():
            if isinstance(step, SetVariable):
                self._variables.pop(step.name, None)


def _refuse_half_done(journal: Journal) -> None:
    half_done: list[Change] = journal.half_done()
    if half_done:
        text = t("change {id} was cut off half way: `doctor undo {id}` goes back, `doctor journal --finish {id}` goes on; "
                 "nothing else is done before", id=half_done[0].id)  # fmt: skip
        raise Refused((say(text),))


def _waiting(pid: str) -> str:
    return say(t("another doctor (pid {pid}) is changing this machine; waiting for it", pid=pid))


def step_line(number: int, words: str, what: str, why: Text | None) -> str:
    """Return one thing that happened to a step, in words."""
    word = {"doing": say("doing"), "done": say("done"), "failed": say("failed"), "undone": say("undone"),
            "kept": say("left as it is")}[what]  # fmt: skip
    return f"{number}. {word}: {words}" + (f": {say(why)}" if why is not None else "")
