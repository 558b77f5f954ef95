"""Asks the doctor about one case and compares the answer: found, missed, forbidden, extra, not checked."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from doctor.judge import judge
from doctor.machine import with_facts
from doctor.model import Finding, Report, Snapshot, ok
from doctor.purpose import workload_from_script
from tests.cases.adapter import to_snapshot
from tests.cases.forbidden import Given, rule
from tests.cases.names import LEVEL_OF, ours
from tests.cases.texts import matched, said_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Case = Mapping[str, Any]
Lint = Callable[[str, Mapping[str, str], str, Snapshot], list[Finding]]


@dataclass
class Outcome:
    """How one case went. ``passed``: nothing missed or forbidden, and an innocent one stayed quiet."""

    case_id: str
    area: str
    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    """Findings above note that nobody expected: a fault where ``expect`` is empty, worth a look elsewhere."""
    ignored_keys: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()
    said: tuple[str, ...] = ()
    """What the case's text was explained with."""
    innocent: bool = False
    script_not_read: bool = False
    """The case has a script and there is nothing to read it with."""

    @property
    def passed(self) -> bool:
        noise = self.extra if self.innocent else []
        return not (self.missed or self.forbidden or self.crashed or noise)

    def explain(self) -> str:
        """Return one line a fault, for an assertion's message."""
        parts = (
            ("missed", self.missed),
            ("forbidden", self.forbidden),
            ("extra", self.extra),
            ("crashed", self.crashed),
        )
        said = "; ".join(
            [f"{item.level} {item.id}: {item.title}" for item in self.findings] + list(self.said)
        )
        return (
            "; ".join(f"{name}: {', '.join(what)}" for name, what in parts if what)
            + f" | said: {said or 'nothing'}"
        )


def load_cases(path: Path) -> list[dict[str, Any]]:
    """Read a file of cases.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not TOML, or has no ``[[case]]``.
    """
    cases = tomllib.loads(path.read_text(encoding="utf-8")).get("case")
    if not isinstance(cases, list):
        raise ValueError(f"{path}: no [[case]] in it")
    return cases


def find_lint() -> Lint | None:
    """Return ``doctor.lint.lint_source`` when this doctor reads scripts."""
    function: Lint | None = getattr(importlib.import_module("doctor.lint"), "lint_source", None)
    return function


def run_case(case: Case, lint: Lint | None = None) -> Outcome:
    """Judge the machine, read the script, and compare with what the case expects and rules out."""
    if "text" in case:
        return _run_text(case)
    facts, script = case.get("facts", {}), case.get("script")
    snapshot, ignored = machine_of(case["id"], facts, script)
    report = judge(snapshot)
    findings = report.findings() + _script_findings(script, facts, lint, snapshot)
    outcome = Outcome(
        case_id=case["id"],
        area=case.get("area", ""),
        ignored_keys=ignored,
        crashed=list(report.crashed),
        findings=tuple(findings),
        innocent=not case.get("expect"),
        script_not_read=script is not None and lint is None,
    )
    _compare_expected(outcome, case.get("expect", []))
    _compare_forbidden(outcome, case.get("must_not", []), _given(findings, report, case, lint))
    return outcome


def _run_text(case: Case) -> Outcome:
    """Explain the case's text, and compare with what must and must not be said of it."""
    said, expected = said_of(case["text"]), case.get("expect", [])
    outcome = Outcome(
        case_id=case["id"], area=case.get("area", ""), said=tuple(said), innocent=not expected, extra=said
    )
    for row in expected:
        (outcome.found if matched(row, said) else outcome.missed).append(row["says"])
    given = Given(findings=(), report=None, facts={}, rejudge=lambda _: [], said=tuple(said))
    _compare_forbidden(outcome, case.get("must_not", []), given)
    return outcome


def try_case(case: Case, lint: Lint | None = None) -> Outcome:
    """As :func:`run_case`; a case that the adapter cannot take is an outcome that says so, and the others still run."""
    try:
        return run_case(case, lint)
    except Exception as error:
        name = str(case.get("id", "?"))
        broke = f"the case could not be run: {type(error).__name__}: {error}"
        return Outcome(case_id=name, area=str(case.get("area", "")), crashed=[broke])


def _script_findings(script: str | None, facts: Case, lint: Lint | None, machine: Snapshot) -> list[Finding]:
    if script is None or lint is None:
        return []
    versions = dict(facts.get("packages", {}))
    for name in ("torch", "python"):
        if name in facts:
            versions[name] = facts[name]
    return lint(script, versions, "<script>", machine)


def machine_of(case_id: str, facts: Case, script: str | None) -> tuple[Snapshot, list[str]]:
    """Return the machine of a case, with what its script asks of it, and the keys that have no place."""
    snapshot, ignored = to_snapshot(case_id, facts)
    if script is None or not facts:
        return snapshot, ignored
    given = snapshot.facts.workload.value
    asked = workload_from_script(script)
    if given:
        arguments = asked.training_args | given.training_args
        asked = msgspec.structs.replace(
            given,
            imports=asked.imports,
            features=asked.features,
            training_args=arguments,
            source=asked.source,
        )
    return with_facts(snapshot, workload=ok(asked, "script")), ignored


def _given(findings: list[Finding], report: Report, case: Case, lint: Lint | None) -> Given:
    case_id, script = case["id"], case.get("script")

    def rejudge(changed: Case) -> list[Finding]:
        machine = machine_of(case_id, changed, script)[0]
        return judge(machine).findings() + _script_findings(script, changed, lint, machine)

    return Given(findings=tuple(findings), report=report, facts=case.get("facts", {}), rejudge=rejudge)


def _compare_expected(outcome: Outcome, expected: list[Case]) -> None:
    wanted_ids: set[str] = set()
    for row in expected:
        names, level = ours(row["finding"]), LEVEL_OF[row["severity"]]
        wanted_ids.update(names)
        given = [item for item in outcome.findings if item.id in names]
        if any(item.level == level for item in given):
            outcome.found.append(row["finding"])
        else:
            seen = ", ".join(sorted({item.level for item in given})) or "not given"
            outcome.missed.append(f"{row['finding']} ({level}; {seen})")
    loud = [item for item in outcome.findings if item.level in ("fail", "warn") and item.id not in wanted_ids]
    outcome.extra = [f"{item.id} ({item.level})" for item in loud]


def _compare_forbidden(outcome: Outcome, entries: list[str], given: Given) -> None:
    for entry in entries:
        broken = rule(entry)
        if broken is None:
            outcome.not_checked.append(entry)
        elif broken(given):
            outcome.forbidden.append(entry)
