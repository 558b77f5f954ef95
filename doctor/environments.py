"""One verdict for each Python environment here: the worst that is wrong with it, apart from what the machine
has anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from doctor.judge import judge
from doctor.machine import live_snapshot
from doctor.model import Facts, Finding, Record, Snapshot, Text, t
from doctor.probes.environments import FoundEnvironment, find_environments

if TYPE_CHECKING:
    from doctor.model import Report
    from doctor.probes import Context

OWN_SECTIONS = ("python", "packages", "torch", "libraries")
"""Sections that differ from environment to environment; all others are read once."""


class EnvironmentVerdict(Record, frozen=True):
    """One environment, in one line."""

    prefix: str
    executable: str
    version: str = ""
    kind: str = ""
    found_by: tuple[str, ...] = ()
    is_current: bool = False
    is_tool: bool = False
    torch: str = ""
    """``2.6.0+cu124``; empty: none, or not readable."""
    torch_status: str = ""
    """Status of the reading: ok, absent (no torch), failed (could not look)."""
    torch_cuda: str | None = None
    """As in :class:`doctor.model.Torch`: "" for a build without CUDA."""
    level: str = ""
    """Level of ``title``: fail, warn, note, unknown; empty: nothing found."""
    finding: str = ""
    title: Text | None = None
    others: int = 0
    """Further findings of this environment."""


class EnvironmentList(Record, frozen=True):
    items: tuple[EnvironmentVerdict, ...] = ()
    machine_findings: int = 0
    """Findings that hold whatever environment is used; not repeated in the lines."""
    complete: bool = True
    """False: a folder hung, and there may be more."""


def list_environments(context: Context) -> EnvironmentList:
    """Find and judge every environment on this machine."""
    from doctor.probes import PROBES

    found, complete = find_environments(context)
    machine = live_snapshot(context, [section for section in PROBES if section not in OWN_SECTIONS])
    common = judge(machine)
    known = {(finding.id, finding.subject) for finding in common.findings()}
    items = tuple(_verdict(context, machine, one, known) for one in found)
    return EnvironmentList(items=items, machine_findings=len(known), complete=complete)


def _verdict(
    context: Context, machine: Snapshot, one: FoundEnvironment, known: set[tuple[str, str]]
) -> EnvironmentVerdict:
    own = live_snapshot(_context_of(context, one), OWN_SECTIONS)
    facts = msgspec.structs.replace(
        machine.facts, **{name: getattr(own.facts, name) for name in OWN_SECTIONS}
    )
    worst, others = worst_finding(judge(msgspec.structs.replace(machine, facts=facts)), known)
    level, finding_id, title = _worst(one, own.facts, worst)
    torch = own.facts.torch.value
    return EnvironmentVerdict(
        prefix=str(one.target.prefix),
        executable=str(one.target.executable),
        version=one.target.version,
        kind=one.target.kind,
        found_by=tuple(name for name in one.found_by if name != "session"),
        is_current=one.is_current,
        is_tool=one.is_tool,
        torch=torch.version if torch else "",
        torch_status=own.facts.torch.status,
        torch_cuda=torch.cuda if torch else None,
        level=level,
        finding=finding_id,
        title=title,
        others=others,
    )


def _context_of(context: Context, one: FoundEnvironment) -> Context:
    from doctor.probes import Context as NewContext

    own = NewContext(root=context.root, environ=context.environ, cwd=context.cwd, clock=context.clock)
    own.__dict__["target"] = one.target
    return own


def worst_finding(report: Report, known: set[tuple[str, str]]) -> tuple[Finding | None, int]:
    """Return the first finding that is not one of the machine's own, and how many more there are."""
    findings = [one.finding for one in report.diagnoses if (one.finding.id, one.finding.subject) not in known]
    return (findings[0], len(findings) - 1) if findings else (None, 0)


def _worst(one: FoundEnvironment, facts: Facts, worst: Finding | None) -> tuple[str, str, Text | None]:
    """Return level, id and sentence: that it cannot run at all goes before what the checks found."""
    if one.target.problem is not None:
        return "fail", "", one.target.problem
    if worst is not None:
        return worst.level, worst.id, worst.title
    failed = next(
        (getattr(facts, name) for name in OWN_SECTIONS if getattr(facts, name).status == "failed"), None
    )
    return ("unknown", "", failed.why or t("it could not be read")) if failed else ("", "", None)
