"""Error text -> what it means, and which checks confirm or refute it on a machine. Pure.

:func:`explain` is given the text of a traceback or log and, when there is one, the snapshot of the machine it came from.
It says what it recognised, most telling first, and what it could extract; a text it does not know stays unknown.
"""

from __future__ import annotations

from doctor.explain.incident import incident_of
from doctor.explain.match import Match, matches
from doctor.judge import judge
from doctor.machine import with_facts
from doctor.model import Finding, Reading, Record, Snapshot, ok

__all__ = ["Explained", "Explanation", "explain", "extract_last_error"]

TEXT_LIMIT_BYTES = 8 << 20
"""Of a longer text the last part is read: that is where a run's error stands."""


class Explained(Record, frozen=True):
    """One recognised failure, held against a machine."""

    match: Match
    confirmed: tuple[Finding, ...] = ()
    """Findings on this machine that explain it."""
    refuted: tuple[str, ...] = ()
    """Ids of findings that would explain it, and were looked for in vain on this machine."""
    open: tuple[str, ...] = ()
    """Ids that could not be looked at here."""


class Explanation(Record, frozen=True):
    known: tuple[Explained, ...] = ()
    last_error: str = ""
    """The last line that looks like an error, whether it is known or not."""


def explain(text: str, snapshot: Snapshot | None = None) -> Explanation:
    """Return what ``text`` says went wrong; with ``snapshot``, each cause is confirmed, refuted or left open."""
    text = text[-TEXT_LIMIT_BYTES:]
    found = matches(text)
    if snapshot is None:
        return Explanation(
            known=tuple(Explained(match=item, open=item.confirms) for item in found),
            last_error=extract_last_error(text),
        )
    if snapshot.facts.incident.status == "skipped":
        incident: Reading[object] = ok(incident_of(text), "the text")
        snapshot = with_facts(snapshot, incident=incident)
    report = judge(snapshot)
    by_id: dict[str, list[Finding]] = {}
    for finding in report.findings():
        by_id.setdefault(finding.id, []).append(finding)
    looked = _ids_looked_at(report.passed)
    return Explanation(
        known=tuple(_held_against(item, by_id, looked) for item in found), last_error=extract_last_error(text)
    )


def _ids_looked_at(passed: tuple[str, ...]) -> set[str]:
    from doctor.checks import all_checks

    return {finding_id for one in all_checks() if one.name in passed for finding_id in one.ids}


def _held_against(item: Match, by_id: dict[str, list[Finding]], looked: set[str]) -> Explained:
    confirmed = [finding for finding_id in item.confirms for finding in by_id.get(finding_id, [])]
    missing = [finding_id for finding_id in item.confirms if finding_id not in by_id]
    return Explained(
        match=item,
        confirmed=tuple(confirmed),
        refuted=tuple(finding_id for finding_id in missing if finding_id in looked),
        open=tuple(finding_id for finding_id in missing if finding_id not in looked),
    )


def extract_last_error(text: str) -> str:
    """Return the last line that looks like an exception or an error message; empty when none does."""
    from doctor.explain.match import ERROR_LINE

    lines = [line.strip() for line in text.splitlines() if ERROR_LINE.search(line)]
    return lines[-1][:500] if lines else ""
