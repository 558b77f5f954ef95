"""Which findings are to be mended and how, and what a look at the same things says afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from doctor.fixes import fix_for
from doctor.fixes.no_fix import for_the_provider
from doctor.machine import with_facts
from doctor.model import LEVELS, Finding, Fix, InstallPackages, Record, Report, Snapshot, Text
from runner.strings import unescape


class Proposal(Record, frozen=True):
    """A finding with its cure, or with the reason why it has none."""

    finding: Finding
    fix: Fix | None = None
    why_not: Text | None = None
    for_the_provider: Text | None = None
    """A message to paste, where only the provider can mend it."""


class Turn(Record, frozen=True):
    """One finding before and after; None: it was, or is, not found."""

    id: str
    subject: str
    before: str | None
    after: str | None
    title: Text | None = None


def propose(finding: Finding, snapshot: Snapshot) -> Proposal:
    found = fix_for(finding, snapshot)
    if isinstance(found, Fix):
        return Proposal(finding=finding, fix=found)
    return Proposal(finding=finding, why_not=found, for_the_provider=for_the_provider(finding, snapshot))


def chosen(report: Report, names: Sequence[str], everything: bool = False) -> list[Finding]:
    """Return the findings meant: those named (``ID`` or ``ID:SUBJECT``), else the causes at fail and warn.

    ``everything`` adds the notes. A symptom is left to its cause: where it stays, it is a cause the next time.
    """
    if names:
        return [one for one in report.findings() if one.id in names or f"{one.id}:{one.subject}" in names]
    levels = LEVELS[:3] if everything else LEVELS[:2]
    return [one.finding for one in report.diagnoses if one.finding.level in levels]


def proposals(
    report: Report, snapshot: Snapshot, names: Sequence[str], everything: bool = False
) -> list[Proposal]:
    """Return a proposal for each finding meant; two that take the very same steps are one.

    What is only done when asked for by name is left out otherwise, with its reason.
    """
    found: list[Proposal] = []
    for finding in chosen(report, names, everything):
        proposal = propose(finding, snapshot)
        if not names and proposal.fix is None and finding.level == "note":
            continue
        if proposal.fix and any(one.fix and one.fix.steps == proposal.fix.steps for one in found):
            continue
        found.append(proposal)
    return found


def with_index(proposal: Proposal, index_url: str) -> Proposal:
    """Return the proposal with its packages taken from ``index_url``, where it names an index of its own."""
    if proposal.fix is None:
        return proposal
    return msgspec.structs.replace(proposal, fix=with_index_url(proposal.fix, index_url))


def with_index_url(fix: Fix, index_url: str) -> Fix:
    """Return the fix with ``index_url`` in place of the index that its steps name."""
    steps = tuple(
        msgspec.structs.replace(step, index_url=index_url)
        if isinstance(step, InstallPackages) and step.index_url
        else step
        for step in fix.steps
    )
    return msgspec.structs.replace(fix, steps=steps)


def is_left_out(proposal: Proposal, names: Sequence[str]) -> bool:
    """Whether a cure waits to be asked for by the finding's name."""
    return bool(proposal.fix and proposal.fix.only_when_asked and not names)


def look_again(
    snapshot: Snapshot, touched: Iterable[str], variables: Mapping[str, str | None], python: str | None
) -> Snapshot:
    """Return the snapshot with only the ``touched`` sections read anew, as a new shell would see them."""
    from doctor.probes import PROBES, Context, read_facts

    touched = tuple(touched)
    environ = {name: value for name, value in os.environ.items() if variables.get(name, "") is not None}
    environ |= {name: value for name, value in variables.items() if value is not None}
    known = snapshot.facts.python.value
    context = Context(environ=environ, python=python or (known.executable if known else None))
    sections = [name for name in PROBES if name in touched]
    facts = read_facts(context, sections)
    fresh: dict[str, Any] = {name: getattr(facts, name) for name in sections}
    data = snapshot.facts.data.value
    if "data" in touched and data:
        fresh["data"] = look_at_data([item.path for item in data.files])
    return with_facts(snapshot, **fresh)


def look_at_data(paths: Iterable[str]) -> Any:
    """Return the data section of these text files: their encodings. Raises OSError."""
    from doctor.model import Data, ok
    from doctor.probes.text_files import inspect_text

    return ok(Data(files=tuple(inspect_text(Path(unescape(path))) for path in paths)), "files")


def turns(before: Report, after: Report, ids: Iterable[str]) -> list[Turn]:
    """Return how the findings of ``ids`` fared, and those that are new."""
    ids, old, new = set(ids), _by_name(before), _by_name(after)
    names = [name for name in old if name[0] in ids or (name not in new)]
    names += [name for name in new if name not in old]
    return [
        Turn(
            id=name[0],
            subject=name[1],
            before=old[name].level if name in old else None,
            after=new[name].level if name in new else None,
            title=(new.get(name) or old[name]).title,
        )
        for name in names
    ]


def _by_name(report: Report) -> dict[tuple[str, str], Finding]:
    return {(one.id, one.subject): one for one in reversed(report.findings())}
