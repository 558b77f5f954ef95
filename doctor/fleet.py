"""Many machines judged together: where they differ that should be alike, what they share, and who is slow. Pure.

The value that most of them have is taken for the one that is meant; who has another is named. What could not be read on
a machine is said, and never counted as alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.fleet_aspects import ASPECTS, Aspect
from doctor.fleet_records import FleetReport, Member, Shared, Unread
from doctor.fleet_values import clocks, data, finding_of, interfaces, mounts, spread, stragglers, variables
from doctor.judge import judge
from doctor.model import LEVELS, Finding

_OF_A_JOB = ("rendezvous-variables-left-over",)
"""What is wrong in a shell and is what it should be in a job."""
FLEET_IDS = (
    *(aspect.id for aspect in ASPECTS), "fleet-variable-differs", "fleet-data-differs", "fleet-interface-missing", "fleet-mount-differs",
    "fleet-clock-skew", "fleet-straggler",
)  # fmt: skip
"""Every finding of this file."""


def judge_fleet(members: Sequence[Member]) -> FleetReport:
    """Return where the members differ and what they share. Deterministic; at least two members."""
    differences: list[Finding] = []
    alike: list[str] = []
    for aspect in ASPECTS:
        found, was_compared = _compare(aspect, members)
        differences += found
        if was_compared and not found:
            alike.append(aspect.id)
    differences += [*variables(members), *data(members), *interfaces(members), *mounts(members), *clocks(members), *stragglers(members)]  # fmt: skip
    return FleetReport(
        members=tuple(one.name for one in members),
        differences=tuple(sorted(differences, key=lambda one: LEVELS.index(one.level))),
        shared=tuple(_shared(members)),
        alike=tuple(alike),
        unread=tuple(_unread(members)),
    )


def _compare(aspect: Aspect, members: Sequence[Member]) -> tuple[list[Finding], bool]:
    """Return the finding where values differ, and whether all members' values were known."""
    values = {one.name: aspect.value(one.snapshot.facts) for one in members}
    known = {name: value for name, value in values.items() if value is not None}
    if len(set(known.values())) < 2:
        return [], len(known) == len(members) and any(known.values())
    title = aspect.title(spread(known))
    return [finding_of(aspect.id, aspect.level, title, known, aspect.section, aspect.advice)], True


def _shared(members: Sequence[Member]) -> Iterator[Shared]:
    held: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
    for one in members:
        for diagnosis in judge(one.snapshot).diagnoses:
            finding = diagnosis.finding
            if finding.id in _OF_A_JOB:
                continue
            _, names = held.setdefault((finding.id, finding.subject), (finding, []))
            names.append(one.name)
    for finding, names in sorted(held.values(), key=lambda both: LEVELS.index(both[0].level)):
        yield Shared(finding=finding, members=tuple(names))


def _unread(members: Sequence[Member]) -> Iterator[Unread]:
    for section in ("driver", "gpus", "torch", "packages", "python", "environment", "provenance"):
        failed = [one.name for one in members if getattr(one.snapshot.facts, section).status == "failed"]
        if failed:
            yield Unread(section=section, members=tuple(failed))
