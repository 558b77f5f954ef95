"""A plan as rows: what stands in its way, whether it fits the card, and every choice with its reason."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import display_width, indent, pad
from doctor.render.plan_answer import headline
from doctor.render.plan_text import grounds_lines
from doctor.render.text import printable_text
from doctor.tui.source import DecisionRow, PlanRow
from doctor.tui.widgets.rows import wrapped
from doctor.tui.words import words_of
from runner.strings import printable
from runner.text import t

_NAMES = 28
"""Columns that names of choices may take."""


def plan_rows(plan: PlanRow | None, width: int) -> Iterator[Styled]:
    """Yield the rows; ``plan`` is None while it is being made."""
    if plan is None:
        yield Styled("… " + say("making the plan"), "dim")
        return
    if plan.changed:
        words = say(t("changed here: {values}", values=printable(", ".join(plan.changed))))
        yield from (Styled(line, "bold yellow") for line in indent(words, width, "* ", "  "))
    for problem in plan.problems:
        for line in indent(problem, width, "✗ ", "  "):
            yield from wrapped(line, width, "bold red")
    yield from _answers(plan, width)
    names = max((display_width(decision.name) for decision in plan.decisions), default=0)
    for decision in plan.decisions:
        yield from _decision(decision, min(_NAMES, names), width)
    yield from _memory(plan, width)


def _answers(plan: PlanRow, width: int) -> Iterator[Styled]:
    """Yield what a person wants to know first: can it start, and does it fit."""
    if not plan.problems:
        words = say("nothing found here that would stop it")
        yield from (Styled(line, "bold green") for line in indent(words, width, "✓ ", "  "))
    if plan.memory is not None and plan.memory.fits is not None:
        sign, style = ("✓ ", "bold green") if plan.memory.fits else ("✗ ", "bold red")
        words = say(t("memory: {answer}", answer=printable_text(headline(plan.memory))))
        yield from (Styled(line, style) for line in indent(words, width, sign, "  "))
    yield Styled()


def _decision(decision: DecisionRow, name_width: int, width: int) -> Iterator[Styled]:
    head = f"{pad(printable(decision.name), name_width)}  "
    value = printable(decision.value)
    lines = indent(f"{value}  {words_of(decision.why)}".rstrip(), width, head, " " * (name_width + 2))
    first = Styled(lines[0])
    first.stylize("bold", len(head), min(len(lines[0]), len(head) + len(value)))
    yield first
    yield from (Styled(line, "dim") for line in lines[1:])


def _memory(plan: PlanRow, width: int) -> Iterator[Styled]:
    """Yield what the step takes of a card, part by part."""
    if plan.memory is None and plan.memory_why is None:
        return
    yield Styled()
    yield Styled(say("Memory of one GPU"), "bold")
    if plan.memory is None:
        words = say(t("could not be predicted: {why}", why=words_of(plan.memory_why)))
        yield from (Styled(line, "magenta") for line in indent(words, width, "? ", "  "))
        return
    style = {True: "", False: "bold red", None: ""}[plan.memory.fits]
    for line in grounds_lines(plan.memory, width):
        for part in line.splitlines():
            yield from wrapped(
                printable_text(part), width, style if part == line and not line.startswith(" ") else ""
            )
