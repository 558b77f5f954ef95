"""A report as text for a terminal: the root cause first, everything that is well in one line."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.fixes import may_fix
from doctor.language import say
from doctor.model import Diagnosis, Evidence, Finding, Report, Snapshot, t
from doctor.render.deep_text import deep_lines
from doctor.render.headline import environment_line, machine_line
from doctor.render.layout import human_bytes, indent, pad, paint
from doctor.render.section_names import listed, section_name
from doctor.render.unlooked import could_not_look, never_looked
from runner.strings import shown

_MARGIN = " " * 9


def level_word(level: str) -> str:
    """Return the level as shown: FAIL and WARN stand out without colour too."""
    return {"fail": say("FAIL"), "warn": say("WARN"), "note": say("note"), "unknown": say("unknown")}[level]


def report_lines(
    report: Report, snapshot: Snapshot, width: int = 100, colour: bool = False, verbose: bool = False
) -> Iterator[str]:
    """Yield the lines of ``doctor check``; notes are one sentence each unless ``verbose``."""
    yield from indent(environment_line(snapshot), width, "", "  ")
    yield from indent(machine_line(snapshot), width, "", "  ")
    noted, above = False, None
    for diagnosis in report.diagnoses:
        if diagnosis.finding.level == "note" and not diagnosis.symptoms and not verbose:
            yield from [] if noted else [""]
            yield from note_lines(diagnosis.finding, width, colour)
            noted = True
        else:
            yield ""
            yield from diagnosis_lines(diagnosis, width, colour, above)
            above = diagnosis.finding
    for block in (
        deep_lines(snapshot.facts.deep.value, width, colour),
        could_not_look(report, width, colour),
    ):
        lines = list(block)
        yield from ["", *lines] if lines else []
    yield ""
    yield from indent(_summary(report, colour), width, "", "  ")


def diagnosis_lines(
    diagnosis: Diagnosis, width: int, colour: bool, above: Finding | None = None
) -> Iterator[str]:
    yield from finding_lines(diagnosis.finding, width, colour, above)
    if diagnosis.symptoms:
        names = ", ".join(
            f"{item.id} ({item.subject})" if item.subject else item.id for item in diagnosis.symptoms
        )
        yield from indent(
            say(t("also explains: {names}", names=shown(names))), width, _MARGIN, _MARGIN + "  "
        )


def finding_lines(finding: Finding, width: int, colour: bool, above: Finding | None = None) -> Iterator[str]:
    """Yield one finding: level and sentence, what to do, what it rests on; the same advice as ``above`` only once."""
    word = paint(pad(level_word(finding.level), 7), finding.level, colour)
    title = indent(printable_text(say(finding.title)), width, "", _MARGIN)
    yield f"{word}  {paint(title[0], 'bold', colour)}"
    for line in title[1:]:
        yield paint(line, "bold", colour)
    if finding.advice is not None:
        repeated = above is not None and (above.id, above.advice) == (finding.id, finding.advice)
        words = say(t("the same as above")) if repeated else printable_text(say(finding.advice))
        yield from indent(words, width, _MARGIN + "→ ", _MARGIN + "  ", commands=True)
    if may_fix(finding):
        yield from indent(
            say(t("mend it: doctor fix {id}", id=finding.id)), width, _MARGIN + "→ ", _MARGIN + "  "
        )
    basis = " · ".join(f"{row.fact}{_between(row)}{shown_value(row)}" for row in finding.evidence)
    footer = f"[{finding.id}]" + (f" {basis}" if basis else "")
    for line in indent(footer, width, _MARGIN, _MARGIN + "  "):
        yield paint(line, "dim", colour)


def _between(row: Evidence) -> str:
    # train.py:13: args = TrainingArguments(   |   driver.version = 550.90.07
    return ": " if row.fact.rpartition(":")[2].isdigit() else " = "


def shown_value(row: Evidence, exact: bool = False) -> str:
    """Return a value as people read it: bytes as GB (``/home 20.0 GB``); ``--json`` has every digit, as has ``exact``.

    A remark behind it (``/root/.cache/huggingface (default)``) is in the reader's language.
    """
    *place, number = row.value.split(" ")
    if row.fact.endswith("_bytes") and number.isdigit() and not exact:
        return shown(" ".join([*place, human_bytes(int(number))]))
    for remark, words in _REMARKS.items():
        if row.value.endswith(f" ({remark})"):
            return f"{shown(row.value.removesuffix(f' ({remark})'))} ({say(words)})"
    return shown(row.value)


_REMARKS = {
    "default": t("default"),
    "release table": t("release table"),
    "by its name": t("by its name"),
}
"""What a check may add to a value: where that comes from, when it is not the machine's own word."""


def note_lines(finding: Finding, width: int, colour: bool) -> Iterator[str]:
    """Yield a note as its sentence and id; ``--why ID`` and ``--verbose`` have the rest."""
    word = paint(pad(level_word("note"), 7), "note", colour)
    title = printable_text(say(finding.title)).replace("\n", " ")
    first, *rest = indent(f"{title} [{finding.id}]", width, "", _MARGIN)
    yield f"{word}  {first}"
    yield from rest


def printable_text(text: str) -> str:
    """Return a sentence safe for a terminal, its own line breaks kept and no backslash doubled."""
    return "\n".join(shown(line) for line in text.splitlines())


def _summary(report: Report, colour: bool) -> str:
    counts = dict.fromkeys(("fail", "warn", "note", "unknown"), 0)
    for diagnosis in report.diagnoses:  # a symptom is no second fault
        counts[diagnosis.finding.level] += 1
    parts = [
        paint(_counted(level, count), level, colour)
        for level, count in counts.items()
        if count and level != "unknown"
    ]
    if not parts and not report.unanswered and not report.crashed:
        parts.append(paint(say("nothing wrong found"), "good", colour))
    parts.append(say(t("{count} {count:check|checks} passed", count=len(report.passed))))
    if report.not_applicable:
        parts.append(say(t("{count} do not apply here", count=len(report.not_applicable))))
    if report.unanswered:
        unanswered = sum(len(item.checks) for item in report.unanswered)
        parts.append(paint(say(t("{count} could not look", count=unanswered)), "unknown", colour))
    return " · ".join(parts)


def _counted(level: str, count: int) -> str:
    if level == "note":
        return say(t("{count} {count:note|notes}", count=count))
    return say(t("{count} {level}", count=count, level=level_word(level)))


def brief_line(report: Report) -> str:
    """Return one line for a login script: the worst finding, how many more, or that all is well."""
    findings = [
        diagnosis.finding for diagnosis in report.diagnoses if diagnosis.finding.level in ("fail", "warn")
    ]
    if findings:
        first = f"{level_word(findings[0].level)}: {printable_text(say(findings[0].title))}"
        more = (
            say(t("(+{count} more: doctor check)", count=len(findings) - 1))
            if len(findings) > 1
            else "(doctor check)"
        )
        return f"doctor: {first} {more}"
    unknown = [item.finding for item in report.diagnoses if item.finding.level == "unknown"]
    if unknown:
        return f"doctor: {level_word('unknown')}: {printable_text(say(unknown[0].title))} (doctor check)"
    if report.unanswered:
        names = listed([section_name(item.section) for item in report.unanswered])
        return say(t("doctor: could not look at {names} (doctor check)", names=names))
    if report.crashed:
        return say(
            t("doctor: {count} {count:check|checks} of ours broke (doctor check)", count=len(report.crashed))
        )
    if missing := never_looked(report):
        return say(
            t(
                "doctor: nothing wrong found in what was recorded; nobody looked at {names}",
                names=listed(missing),
            )
        )
    return say(
        t("doctor: nothing wrong found, {count} {count:check|checks} passed", count=len(report.passed))
    )
