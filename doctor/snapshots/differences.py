"""One difference between two snapshots, as a record. Pure."""

from __future__ import annotations

from doctor.model import Record, Text
from doctor.snapshots.meanings import Meaning, Verdict


class Difference(Record, frozen=True):
    section: str
    """packages, machine, environment, code, data, run, check."""
    subject: str
    verdict: Verdict
    why: Text
    a: str = ""
    """Empty: not there."""
    b: str = ""
    source: str = ""
    """Where the reason is written."""


def difference(section: str, subject: str, a: object, b: object, meaning: Meaning) -> Difference:
    return Difference(
        section=section, subject=subject, a="" if a is None else str(a), b="" if b is None else str(b),
        verdict=meaning.verdict, why=meaning.why, source=meaning.source,
    )  # fmt: skip
