"""What judging gave: findings, causes over symptoms, and what could not be answered."""

from __future__ import annotations

from typing import Literal

from doctor.model.readings import SCHEMA, Record
from runner.text import Text

Level = Literal["fail", "warn", "note", "unknown"]
LEVELS: tuple[Level, ...] = ("fail", "warn", "note", "unknown")
"""Worst first."""


class Evidence(Record, frozen=True):
    fact: str
    """Path in Facts: ``driver.version``, ``gpus.items[0].compute_capability``."""
    value: str


class Finding(Record, frozen=True):
    """One thing a person should know. A finding that is wrong once costs more trust than ten that are missing."""

    id: str
    level: Level
    title: Text
    """One sentence: what is wrong, with the numbers."""
    subject: str = ""
    """Of what: the package, card, path, variable. Short, not translated."""
    advice: Text | None = None
    """What to do, in one or two sentences; commands in it can be pasted."""
    evidence: tuple[Evidence, ...] = ()
    cause_of: tuple[str, ...] = ()
    """Ids of findings that are only symptoms of this one when both are given."""
    fix: str = ""
    """Id of the fix that mends it; empty: none."""
    link: str = ""


class Diagnosis(Record, frozen=True):
    """A finding with the symptoms that stand under it."""

    finding: Finding
    symptoms: tuple[Finding, ...] = ()


class Unanswered(Record, frozen=True):
    """Checks that could not answer because a section could not be read."""

    section: str
    why: Text
    checks: tuple[str, ...]


class Report(Record, frozen=True):
    """What judging a snapshot gave: worst first, causes before symptoms."""

    schema: int = SCHEMA
    label: str = ""
    taken_at: str = ""
    diagnoses: tuple[Diagnosis, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    unread: tuple[Unanswered, ...] = ()
    """Sections that could not be read and that no check hangs on here, and lists that were not read to their end; they
    change no exit code."""
    passed: tuple[str, ...] = ()
    """Checks that looked and found nothing."""
    not_applicable: tuple[str, ...] = ()
    not_looked: tuple[str, ...] = ()
    """Sections that nobody read."""
    crashed: tuple[str, ...] = ()
    """Checks that raised: a bug of ours, reported as such."""

    def findings(self) -> list[Finding]:
        """Return every finding, symptoms included, in the order shown."""
        return [item for diagnosis in self.diagnoses for item in (diagnosis.finding, *diagnosis.symptoms)]
