"""A judged machine as items of a list: causes with their symptoms, what has no answer, what passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text as Styled

from doctor.commands import VERBS
from doctor.fixes import may_fix
from doctor.language import say
from doctor.model import Deep, Diagnosis, Finding, Report, Unanswered, t
from doctor.render.deep_text import deep_lines
from doctor.render.layout import indent, pad
from doctor.render.section_names import listed, section_name
from doctor.render.text import printable_text
from doctor.render.unlooked import never_looked
from doctor.tui.source import Examination
from doctor.tui.widgets.item_list import Item
from doctor.tui.words import LEVEL_STYLES, level_label
from runner.strings import printable

_LABEL = 10
"""Columns of the level's sign and word."""
_MARGIN = " " * _LABEL


def finding_items(examination: Examination) -> list[Item]:
    """Return the items in the order shown: worst first, then what has no answer, then what passed."""
    report = examination.report
    items = [_diagnosis_item(diagnosis, index) for index, diagnosis in enumerate(report.diagnoses)]
    items += [_unanswered_item(unanswered) for unanswered in report.unanswered]
    items += [_crashed_item(line, index) for index, line in enumerate(report.crashed)]
    if never_looked(report):
        items.append(Item("not-looked", lambda width, unfolded: _not_looked(report, width)))
    if report.unread:
        items.append(Item("unread", lambda width, unfolded: _unread(report, width)))
    deep = examination.snapshot.facts.deep.value
    if deep is not None:
        items.append(Item("deep", lambda width, unfolded: _deep(deep, width)))
    items.append(Item("passed", lambda width, unfolded: list(_passed(report, width, unfolded))))
    return items


def _diagnosis_item(diagnosis: Diagnosis, index: int) -> Item:
    def rows(width: int, unfolded: bool) -> Sequence[Styled]:
        finding = diagnosis.finding
        out = list(_title(finding, width, ""))
        if unfolded:
            out += _details(finding, width, _MARGIN)
            for symptom in diagnosis.symptoms:
                out += _symptom(symptom, width)
            out.append(Styled())
        elif diagnosis.symptoms:
            names = ", ".join(printable(symptom.id) for symptom in diagnosis.symptoms)
            out += _wrapped(
                say(t("└ also explains {count}: {names}", count=len(diagnosis.symptoms), names=names)),
                width,
                "dim",
            )
        return out

    return Item(_key(diagnosis, index), rows)


def _symptom(symptom: Finding, width: int) -> Iterator[Styled]:
    yield Styled(f"{_MARGIN}└ " + say("a symptom of it:"), "dim")
    yield from _title(symptom, width, _MARGIN)
    yield from _details(symptom, width, _MARGIN * 2)


def _title(finding: Finding, width: int, margin: str) -> Iterator[Styled]:
    label = pad(level_label(finding.level), _LABEL)
    lines = indent(printable_text(say(finding.title)), width, "", margin + _MARGIN)
    yield Styled.assemble(margin, (label, LEVEL_STYLES[finding.level]), (lines[0], "bold"))
    yield from (Styled(line, "bold") for line in lines[1:])


def _details(finding: Finding, width: int, margin: str) -> Iterator[Styled]:
    if finding.advice is not None:
        for line in indent(printable_text(say(finding.advice)), width, margin + "→ ", margin + "  "):
            yield Styled(line)
    if may_fix(finding) and "fix" in VERBS:
        yield Styled(margin + "→ " + say(t("mend it: doctor fix {id}", id=finding.id)))
    for row in finding.evidence:
        for line in indent(f"{printable(row.fact)} = {printable(row.value)}", width, margin, margin + "  "):
            yield Styled(line, "cyan")
    footer = f"[{finding.id}]" + (f" {finding.link}" if finding.link else "")
    yield Styled(f"{margin}{printable(footer)}", "dim")


def _wrapped(words: str, width: int, style: str = "") -> list[Styled]:
    return [Styled(line, style) for line in indent(words, width, _MARGIN, _MARGIN + "  ")]


def _labelled(level: str, words: str, width: int) -> list[Styled]:
    first, *rest = indent(words, width, "", _MARGIN)
    label = Styled(pad(level_label(level), _LABEL), LEVEL_STYLES[level])
    return [Styled.assemble(label, first), *(Styled(line) for line in rest)]


def _unanswered_item(unanswered: Unanswered) -> Item:
    def rows(width: int, unfolded: bool) -> Sequence[Styled]:
        words = say(
            t("{section} could not be read: {why}. {count} {count:check has|checks have} no answer.",
              section=section_name(unanswered.section), why=say(unanswered.why).rstrip(".。"), count=len(unanswered.checks))
        )  # fmt: skip
        out = _labelled("unknown", printable_text(words), width)
        return out + (_wrapped(", ".join(unanswered.checks), width, "dim") if unfolded else [])

    return Item(f"unanswered:{unanswered.section}", rows)


def _crashed_item(line: str, index: int) -> Item:
    def rows(width: int, unfolded: bool) -> Sequence[Styled]:
        return _labelled(
            "unknown", say(t("a check of ours broke, please report it: {what}", what=printable(line))), width
        )

    return Item(f"crashed:{index}", rows)


def _not_looked(report: Report, width: int) -> list[Styled]:
    return _wrapped(say(t("not looked at: {names}", names=listed(never_looked(report)))), width, "dim")


def _unread(report: Report, width: int) -> list[Styled]:
    """Sections that could not be read and that no check hangs on here."""
    reasons = (f"{section_name(item.section)} ({say(item.why).rstrip('.。')})" for item in report.unread)
    return _wrapped(
        printable_text(say(t("could not look at: {names}", names="; ".join(reasons)))), width, "dim"
    )


def _deep(deep: Deep, width: int) -> list[Styled]:
    return [Styled(line) for line in deep_lines(deep, width, colour=False)]


def finding_of(report: Report, key: str) -> Finding | None:
    """Return the finding that an item's key stands for; None for the other items."""
    return next((one.finding for index, one in enumerate(report.diagnoses) if _key(one, index) == key), None)


def _key(diagnosis: Diagnosis, index: int) -> str:
    return f"{index}:{diagnosis.finding.id}:{diagnosis.finding.subject}"


def _passed(report: Report, width: int, unfolded: bool) -> Iterator[Styled]:
    is_complete = not report.unanswered and not report.crashed
    if not report.findings():
        words = (
            say("nothing wrong found")
            if is_complete
            else say("nothing wrong found in what could be looked at")
        )
        yield Styled(("✓ " if is_complete else "") + words, "bold green" if is_complete else "bold")
    label = Styled(pad("✓", _LABEL), "green")
    yield Styled.assemble(label, say(t("{count} {count:check|checks} passed", count=len(report.passed))))
    if unfolded:
        yield from _wrapped(", ".join(report.passed), width, "dim")
        if report.not_applicable:
            count, names = len(report.not_applicable), ", ".join(report.not_applicable)
            yield from _wrapped(
                say(t("{count} do not apply here: {names}", count=count, names=names)), width, "dim"
            )


def summary(report: Report) -> Styled:
    """Return one row of counts: ``✗ FAIL 1   ! WARN 2   ? 3 checks could not look   ✓ 41 passed``."""
    counts = dict.fromkeys(LEVEL_STYLES, 0)
    for finding in report.findings():
        counts[finding.level] += 1
    unanswered = sum(len(item.checks) for item in report.unanswered) + len(report.crashed)
    parts = [
        Styled(f"{level_label(level)} {count}", LEVEL_STYLES[level])
        for level, count in counts.items()
        if count
    ]
    if unanswered:
        parts.append(
            Styled(
                "? " + say(t("{count} {count:check|checks} could not look", count=unanswered)),
                LEVEL_STYLES["unknown"],
            )
        )
    parts.append(
        Styled("✓ " + say(t("{count} {count:check|checks} passed", count=len(report.passed))), "green")
    )
    return Styled("   ").join(parts)
