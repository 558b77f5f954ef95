"""Error text -> what it means, and which checks confirm or refute it on a machine. Pure.

:func:`explain` is given the text of a traceback or log and, when there is one, the snapshot of the machine it came from.
It says what it recognised, most telling first, and what it could extract; a text it does not know stays unknown.
"""

from __future__ import annotations

import re

from doctor.explain.forms import plain
from doctor.explain.frames import Raised, raised_in
from doctor.explain.incident import incident_of
from doctor.explain.match import Match, matches
from doctor.judge import judge
from doctor.lint import RULE_IDS
from doctor.machine import with_facts
from doctor.model import Finding, Reading, Record, Snapshot, ok
from doctor.purpose import judge_for_script

__all__ = ["Explained", "Explanation", "explain", "extract_last_error"]

TEXT_LIMIT_BYTES = 8 << 20
"""Of a longer text the last part is read: that is where a run's error stands."""


LINE_LIMIT = 4000
"""Of a longer line (a dumped array, a hole in a file) its end."""


class Explained(Record, frozen=True):
    """One recognised failure, held against a machine."""

    match: Match
    confirmed: tuple[Finding, ...] = ()
    """Findings on this machine that explain it."""
    refuted: tuple[str, ...] = ()
    """Ids of findings that would explain it, and were looked for in vain on this machine."""
    open: tuple[str, ...] = ()
    """Ids that could not be looked at here."""
    untold: tuple[str, ...] = ()
    """Ids that a machine would tell, and none was asked for."""
    in_script: tuple[str, ...] = ()
    """Ids that only a look into the training script could tell, and none was given."""


class Explanation(Record, frozen=True):
    known: tuple[Explained, ...] = ()
    last_error: str = ""
    """The last line that looks like an error, whether it is known or not."""
    raised: Raised | None = None
    """Where the last traceback ends, for a text of which nothing is known; None for others."""


KILL = "process-killed-for-memory"
# traceback : Signal 9 (SIGKILL) received by PID 24111   |   exitcode  : -9 (pid: 24111)
_PID = re.compile(r"\bpid:? ?(\d+)", re.IGNORECASE)


def explain(
    text: str, snapshot: Snapshot | None = None, script: tuple[str, str] | None = None
) -> Explanation:
    """Return what ``text`` says went wrong; with ``snapshot``, each cause is confirmed, refuted or left open.

    ``script`` is the training script that gave the text, its source and its name: it is looked into as well.
    """
    text = plain(text[-TEXT_LIMIT_BYTES:])
    found = matches(text)
    if not found:
        return Explanation(last_error=extract_last_error(text), raised=raised_in(text))
    if snapshot is None:
        return Explanation(
            known=tuple(_without_machine(item) for item in found), last_error=extract_last_error(text)
        )
    if snapshot.facts.incident.status == "skipped":
        incident: Reading[object] = ok(incident_of(text), "the text")
        snapshot = with_facts(snapshot, incident=incident)
    report = judge_for_script(snapshot, *script)[1] if script else judge(snapshot)
    by_id: dict[str, list[Finding]] = {}
    for finding in report.findings():
        by_id.setdefault(finding.id, []).append(finding)
    looked = _ids_looked_at(report.passed)
    if script and "syntax-error" not in by_id:
        looked |= set(RULE_IDS)
    known = tuple(_held_against(item, _of_its_process(by_id, item, snapshot), looked) for item in found)
    return Explanation(known=known, last_error=extract_last_error(text))


def _of_its_process(
    by_id: dict[str, list[Finding]], item: Match, snapshot: Snapshot
) -> dict[str, list[Finding]]:
    """Return the findings without kills of another process than the one that the matched line names.

    In a container with process numbers of its own those of the kernel log are others, so nothing is left out there.
    """
    container = snapshot.facts.container.value
    named = set(_PID.findall(item.line))
    if not named or container is None or not container.host_pid_namespace:
        return by_id
    return {
        name: [one for one in found if str(one.title.params.get("pid", "")) in ("", *named)]
        if name == KILL
        else found
        for name, found in by_id.items()
    }


def _without_machine(item: Match) -> Explained:
    ours = _only_in_script(item.confirms)
    return Explained(
        match=item, untold=tuple(name for name in item.confirms if name not in ours), in_script=ours
    )


def _only_in_script(ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of ``ids`` that no check gives: they stand in a script."""
    from doctor.checks import all_checks

    given = {finding_id for one in all_checks() for finding_id in one.ids}
    return tuple(name for name in ids if name not in given)


def _ids_looked_at(passed: tuple[str, ...]) -> set[str]:
    from doctor.checks import all_checks

    return {finding_id for one in all_checks() if one.name in passed for finding_id in one.ids}


def _held_against(item: Match, by_id: dict[str, list[Finding]], looked: set[str]) -> Explained:
    confirmed = [finding for finding_id in item.confirms for finding in by_id.get(finding_id, [])]
    missing = [finding_id for finding_id in item.confirms if finding_id not in by_id]
    unseen = tuple(finding_id for finding_id in missing if finding_id not in looked)
    in_script = _only_in_script(unseen)
    return Explained(
        match=item,
        confirmed=tuple(confirmed),
        refuted=tuple(finding_id for finding_id in missing if finding_id in looked),
        open=tuple(finding_id for finding_id in unseen if finding_id not in in_script),
        in_script=in_script,
    )


def extract_last_error(text: str) -> str:
    """Return the last line that looks like an exception or an error message; empty when none does."""
    from doctor.explain.match import ERROR_LINE, ERROR_WORDS

    whole = text.lower()
    words = [word for word in ERROR_WORDS if word in whole]
    for whole in reversed(text.splitlines()):
        line = whole[-LINE_LIMIT:]
        lowered = line.lower()
        if any(word in lowered for word in words) and ERROR_LINE.search(line):
            return line.strip()[:500]
    return ""
