"""A fix's screen as rows: the plan step by step, what happened while it was carried out, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.fix_text import proposal_lines, turn_lines
from doctor.render.layout import indent
from doctor.tui.fixing import Cured, FixPlan
from doctor.tui.words import words_of
from runner.strings import printable
from runner.text import t


class FixState(NamedTuple):
    """What a fix's screen knows."""

    is_planned: bool = False
    plan: FixPlan | None = None
    """None, once planned: nothing can be done."""
    told: tuple[str, ...] = ()
    is_busy: bool = False
    cured: Cured | None = None
    trouble: str = ""


def fix_rows(state: FixState, width: int) -> list[Styled]:
    """Return the rows, at most ``width`` columns each: the plan first, the newest last."""
    out = list(_plan_rows(state, width))
    if state.told:
        told = (line for words in state.told for line in indent(printable(words), width, "  ", "     "))
        out += [Styled(), *map(Styled, told)]
    if state.is_busy:
        out.append(Styled("… " + say("working; leaving the screen does not stop it"), "bold"))
    if state.cured is not None:
        out += [Styled(), *_outcome(state.cured, width)]
    if state.trouble:
        why = indent(state.trouble, width, "✗ ", "  ")
        out += [Styled(), *(Styled(line, "bold red") for line in why)]
    return out


def _plan_rows(state: FixState, width: int) -> Sequence[Styled]:
    if not state.is_planned:
        return [Styled("… " + say("making the plan"), "dim")]
    if state.plan is None:
        lines = indent(say("nothing here can be done about it by the doctor"), width, "", "")
        return [Styled(line) for line in lines]
    return [Styled.from_ansi(line) for line in _plan_lines(state.plan, width)]


def _plan_lines(plan: FixPlan, width: int) -> list[str]:
    steps = plan.proposal.fix.steps if plan.proposal.fix else ()
    at = {id(step): index for index, step in enumerate(steps)}
    lines = list(
        proposal_lines(
            plan.proposal,
            lambda step: list(plan.previews[at[id(step)]]),
            lambda step: plan.ways_back[at[id(step)]],
            width,
            colour=True,
        )
    )
    if plan.is_done_already:
        words = say("new shells have this already; this one has not read it yet")
        lines += ["", *indent(words, width, "", "")]
    return lines


def _outcome(cured: Cured, width: int) -> list[Styled]:
    words, style = {
        "done": (say(t("✓ done; `u` or `doctor undo {id}` takes it back", id=cured.change)), "bold green"),
        "undone": ("✓ " + say("taken back"), "bold green"),
        "stopped": (
            say(t("■ stopped; `u` or `doctor undo {id}` takes back what was done", id=cured.change)),
            "bold",
        ),
        "failed": ("✗ " + say("it did not work out, and everything was put back as it was"), "bold red"),
        "not-undone": ("✗ " + say("it could not be taken back"), "bold red"),
    }.get(
        cured.outcome,
        ("✗ " + say(t("half done: `doctor undo {id}` tries again", id=cured.change)), "bold red"),
    )
    out = [Styled(line, style) for line in indent(words, width, "", "  ")]
    if cured.why is not None:
        out += [Styled(line) for line in indent(words_of(cured.why), width, "  ", "  ")]
    return out + [Styled.from_ansi("  " + line) for line in turn_lines(cured.turns, colour=True)]
