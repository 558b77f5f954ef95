"""Runs every check over a snapshot, folds symptoms under causes, sorts, and picks the exit code. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from doctor.checks import Check, all_checks
from doctor.model import (
    LEVELS,
    Diagnosis,
    Facts,
    Finding,
    Level,
    Reading,
    Report,
    Section,
    Snapshot,
    Text,
    Unanswered,
    t,
)


def judge(snapshot: Snapshot, checks: Sequence[Check] | None = None) -> Report:
    """Return what the checks find in ``snapshot``. Deterministic; a check that raises costs only its own answer."""
    findings: list[Finding] = []
    passed, not_applicable, crashed = [], [], []
    unanswered: dict[str, list[str]] = {}
    for one in all_checks() if checks is None else checks:
        status = _status(one, snapshot.facts)
        if status == "ok":
            found, error = _ask(one, snapshot.facts)
            findings += found
            if error:
                crashed.append(f"{one.name}: {error}")
            elif not found:
                passed.append(one.name)
        elif status in ("absent", "skipped"):
            not_applicable.append(one.name)
        else:
            unanswered.setdefault(status, []).append(one.name)
    return Report(
        label=snapshot.label,
        taken_at=snapshot.taken_at,
        diagnoses=fold_symptoms(findings),
        unanswered=tuple(
            Unanswered(section=section, why=_why(snapshot.facts, section), checks=tuple(names))
            for section, names in unanswered.items()
        ),
        unread=tuple(
            Unanswered(section=section, why=why, checks=())
            for section in Facts.__struct_fields__
            if section not in unanswered and (why := _why_unread(snapshot.facts, section)) is not None
        ),
        passed=tuple(passed),
        not_applicable=tuple(not_applicable),
        not_looked=tuple(
            name for name in Facts.__struct_fields__ if _reading(snapshot.facts, name).status == "skipped"
        ),
        crashed=tuple(crashed),
    )


def _reading(facts: Facts, section: str) -> Reading[object]:
    reading: Reading[object] = getattr(facts, section)
    return reading


def _status(one: Check, facts: Facts) -> str:
    """Return ``ok``, ``absent``, ``skipped``, or the name of the first needed section that failed."""
    statuses = {section: _reading(facts, section).status for section in one.needs}
    for quiet in ("absent", "skipped"):
        if quiet in statuses.values():
            return quiet
    return next((section for section, status in statuses.items() if status == "failed"), "ok")


def _ask(one: Check, facts: Facts) -> tuple[list[Finding], str]:
    arguments = {section: _reading(facts, section).value for section in one.needs}
    arguments |= {section: _reading(facts, section) for section in one.looks_at}
    found: list[Finding] = []
    try:
        for finding in one.function(**arguments):
            if finding.id not in one.ids:
                raise ValueError(f"gave {finding.id}, which it did not declare")
            found.append(finding)
    except Exception as error:  # a bug of ours is one answer lost, named in the report, never the whole check
        return found, f"{type(error).__name__}: {error}"
    return found, ""


def _why(facts: Facts, section: str) -> Text:
    return _reading(facts, section).why or t("it could not be read")


def _why_unread(facts: Facts, section: str) -> Text | None:
    """Return why ``section`` could not be read, or why its list is not whole; None: it was read."""
    reading = _reading(facts, section)
    if reading.status == "failed":
        return _why(facts, section)
    return reading.value.unread.get("items") if isinstance(reading.value, Section) else None


def fold_symptoms(findings: Iterable[Finding]) -> tuple[Diagnosis, ...]:
    """Put each finding that another one explains under it; worst first, in the order given within a level.

    A symptom goes under the first cause that names it; a chain collapses onto its head. Findings that name each other
    stay apart.
    """
    ordered = list(findings)
    cause_index: dict[int, int] = {}
    for index, finding in enumerate(ordered):
        for other_index, other in enumerate(ordered):
            if other_index != index and finding.id in other.cause_of and other.id not in finding.cause_of:
                cause_index[index] = other_index
                break

    def head(index: int) -> int:
        seen = {index}
        while index in cause_index and cause_index[index] not in seen:
            index = cause_index[index]
            seen.add(index)
        return index

    heads: dict[int, list[Finding]] = {index: [] for index in range(len(ordered)) if head(index) == index}
    for index, finding in enumerate(ordered):
        if head(index) != index:
            heads.setdefault(head(index), []).append(finding)
    diagnoses = [Diagnosis(finding=ordered[index], symptoms=tuple(under)) for index, under in heads.items()]
    return tuple(sorted(diagnoses, key=lambda item: (LEVELS.index(item.finding.level), -len(item.symptoms))))


def exit_code(report: Report, fail_on: Level = "fail") -> int:
    """Return 1 when a finding is at or above ``fail_on``, else 3 when a check could not look or broke, else 0."""
    threshold = LEVELS.index(fail_on)
    if any(LEVELS.index(finding.level) <= threshold for finding in report.findings()):
        return 1
    open_questions = report.unanswered or report.crashed
    return 3 if open_questions or any(item.level == "unknown" for item in report.findings()) else 0
