"""Fixes, their steps and the journal as text for a terminal. Says what `cure` and `apply` found; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from doctor.cure import Proposal, Turn
from doctor.language import say
from doctor.model import (
    AddLine,
    AskUrl,
    Change,
    Fix,
    InstallPackages,
    JournalEntry,
    MovePath,
    RecodeFile,
    RemovePath,
    Run,
    SetVariable,
    Step,
    StopProcess,
    Text,
    WriteFile,
    t,
)
from doctor.render.layout import indent, pad, paint
from doctor.render.section_names import listed, section_name
from doctor.render.text import level_word, printable_text
from runner.strings import printable

Preview = Callable[[Step], list[str]]
WayBack = Callable[[Step], Text | None]
_MARGIN = "    "


def step_words(step: Step) -> str:
    """Return one step in a few words, in the current language."""
    text: Text
    if isinstance(step, SetVariable):
        text = (
            t("unset {name}", name=step.name)
            if step.value is None
            else t("set {name}={value}", name=step.name, value=step.value)
        )
    elif isinstance(step, InstallPackages):
        text = t("change packages of {python}", python=step.python)
    elif isinstance(step, MovePath):
        text = t("move {path} to {target}, checked by hash, a link in its place", path=step.source, target=step.target)  # fmt: skip
    elif isinstance(step, RemovePath):
        text = t("put {path} aside", path=step.path) if step.keep else t("delete {path}", path=step.path)
    elif isinstance(step, StopProcess):
        text = t("end process {pid} ({command})", pid=step.pid, command=step.command)
    elif isinstance(step, RecodeFile):
        text = t("write {path} as UTF-8, the original kept as {kept}", path=step.path, kept=step.kept)
    else:
        text = _other(step)
    return printable_text(say(text))


def _other(step: Run | WriteFile | AddLine | AskUrl) -> Text:
    if isinstance(step, AddLine):
        return t("one line in {path} that reads the variables", path=step.path)
    if isinstance(step, WriteFile):
        return t("write {path}", path=step.path)
    if isinstance(step, AskUrl):
        return t("ask whether {url} answers", url=step.url)
    return t("run {command}", command=" ".join(step.argv))


def proposal_lines(
    proposal: Proposal, preview: Preview, way_back: WayBack, width: int, colour: bool
) -> Iterator[str]:
    """Yield one finding and its plan: every step with its exact command or difference, and whether it can be undone."""
    finding = proposal.finding
    head = f"[{finding.id}]" + (f" {finding.subject}" if finding.subject else "")
    yield paint(pad(level_word(finding.level), 7), finding.level, colour) + " " + printable(head)
    yield from indent(printable_text(say(finding.title)), width, _MARGIN, _MARGIN)
    if proposal.fix is not None:
        yield from _plan_lines(proposal.fix, preview, way_back, width, colour)
    elif proposal.why_not is not None:
        why = printable_text(say(proposal.why_not))
        yield from indent(say(t("no fix: {why}", why=why)), width, _MARGIN + "→ ", _MARGIN + "  ")
        if finding.advice is not None and finding.advice != proposal.why_not:
            advice = printable_text(say(finding.advice))
            yield from indent(advice, width, _MARGIN + "→ ", _MARGIN + "  ")
    if proposal.for_the_provider is not None:
        yield _MARGIN + say("To paste into the provider's support form:")
        yield from indent(_message(proposal), width, _MARGIN + "| ", _MARGIN + "| ")


def _message(proposal: Proposal) -> str:
    """Return the text for the provider, the finding's sentence in it in the same language."""
    text = proposal.for_the_provider
    assert text is not None
    return printable_text(
        say(Text(text.msgid, {**text.params, "what": say(proposal.finding.title).rstrip(".。")}))
    )


def _plan_lines(fix: Fix, preview: Preview, way_back: WayBack, width: int, colour: bool) -> Iterator[str]:
    yield from indent(printable_text(say(fix.title)), width, _MARGIN + "→ ", _MARGIN + "  ")
    for number, step in enumerate(fix.steps, 1):
        yield from step_lines(number, step, preview, way_back, width, colour)
    if fix.risk is not None:
        yield from indent(say(t("risk: {what}", what=printable_text(say(fix.risk)))), width, _MARGIN, _MARGIN + "  ")  # fmt: skip
    if fix.touches:
        sections = listed([*map(section_name, fix.touches)])
        yield from indent(say(t("looked at again afterwards: {sections}", sections=sections)), width, _MARGIN, _MARGIN + "  ")  # fmt: skip


def step_lines(
    number: int, step: Step, preview: Preview, way_back: WayBack, width: int, colour: bool
) -> Iterator[str]:
    reason = way_back(step)
    back = say("can be undone") if reason is None else say("cannot be undone")
    yield from indent(f"{number}. {step_words(step)} ({back})", width, _MARGIN, _MARGIN + "   ")
    for line in preview(step):
        yield paint(f"{_MARGIN}   {printable(line)}", "dim", colour)


def turn_lines(turns: Sequence[Turn], colour: bool) -> Iterator[str]:
    """Yield ``FAIL -> gone [id] subject`` for each finding that was meant or changed."""
    for turn in turns:
        before = paint(level_word(turn.before), turn.before, colour) if turn.before else say("not there")
        after = paint(level_word(turn.after), turn.after, colour) if turn.after else paint(say("gone"), "good", colour)  # fmt: skip
        yield f"{before} -> {after}  [{turn.id}] {printable(turn.subject)}"


def outcome_word(outcome: str) -> str:
    """Return an entry's outcome in the current language."""
    return {
        "begun": say("half done"),
        "done": say("done"),
        "failed": say("failed, gone back"),
        "undoing": say("half undone"),
        "undone": say("undone"),
    }[outcome]


def journal_lines(
    changes: Sequence[Change], entries: Sequence[JournalEntry], half_done: Sequence[Change], width: int
) -> Iterator[str]:
    """Yield every change, newest first, with its steps."""
    cut_off = {change.id for change in half_done}
    for change in reversed(changes):
        yield f"{change.id}  {change.at}  [{change.fix.id}]"
        if change.id in cut_off:
            note = t(
                "CUT OFF: `doctor undo {id}` goes back, `doctor journal --finish {id}` goes on", id=change.id
            )
            yield from indent(say(note), width, "  ", "  ")
        for entry in entries:
            if entry.id.partition(".")[0] == change.id:
                first = f"  {entry.id}  {outcome_word(entry.outcome)}: "
                words = step_words(entry.step) + (f" ({entry.error})" if entry.error else "")
                yield from indent(words, width, first, "      ")
