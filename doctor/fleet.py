"""Many machines judged together: where they differ that should be alike, what they share, and who is slow. Pure.

The value that most of them have is taken for the one that is meant; who has another is named. What could not be read on
a machine is said, and never counted as alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, nan
from statistics import median

from msgspec.structs import replace

from doctor.fleet_aspects import ASPECTS, Aspect
from doctor.judge import judge
from doctor.model import LEVELS, Evidence, Finding, Level, Record, Snapshot, Text, t

STRAGGLER_RATIO = 1.5
"""A machine that takes this many times the median of all is named."""
CLOCK_SKEW_S = 2.0
NAMES_SHOWN = 6
_RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "UCX_", "FI_")
_ALIKE = ("PYTHONHASHSEED", "OMP_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # fmt: skip
_OF_A_JOB = ("rendezvous-variables-left-over",)
"""What is wrong in a shell and is what it should be in a job."""
FLEET_IDS = (
    *(aspect.id for aspect in ASPECTS), "fleet-variable-differs", "fleet-data-differs", "fleet-interface-missing",
    "fleet-clock-skew", "fleet-straggler",
)  # fmt: skip
"""Every finding of this file."""


class Member(Record, frozen=True):
    """One machine or rank."""

    name: str
    """``rank 3``, or its snapshot's file."""
    snapshot: Snapshot
    measures: dict[str, float] = {}
    """Seconds by what was measured: ``matmul``, ``all_reduce``; smaller is better."""
    clock_s: float | None = None
    """How far its clock is ahead of the first member's, as measured over the network."""


class Shared(Record, frozen=True):
    """A finding of single machines, with those that have it."""

    finding: Finding
    members: tuple[str, ...]


class Unread(Record, frozen=True):
    """A section that some members could not read: there nothing was compared."""

    section: str
    members: tuple[str, ...]


class FleetReport(Record, frozen=True):
    """What judging a fleet gave."""

    members: tuple[str, ...]
    differences: tuple[Finding, ...] = ()
    """Worst first."""
    shared: tuple[Shared, ...] = ()
    """What ``doctor check`` says on each, once for all that have it; worst first."""
    alike: tuple[str, ...] = ()
    """Aspects that were read on all and are the same."""
    unread: tuple[Unread, ...] = ()

    def findings(self) -> list[Finding]:
        return [*self.differences, *(one.finding for one in self.shared)]


def judge_fleet(members: Sequence[Member]) -> FleetReport:
    """Return where the members differ and what they share. Deterministic; at least two members."""
    differences: list[Finding] = []
    alike: list[str] = []
    for aspect in ASPECTS:
        found, was_compared = _compare(aspect, members)
        differences += found
        if was_compared and not found:
            alike.append(aspect.id)
    differences += [*_variables(members), *_data(members), *_interfaces(members), *_clocks(members), *_stragglers(members)]  # fmt: skip
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
    title = aspect.title(_spread(known))
    return [_finding(aspect.id, aspect.level, title, known, aspect.section, aspect.advice)], True


def _finding(
    finding_id: str, level: Level, title: Text, values: Mapping[str, str], fact: str, advice: Text | None
) -> Finding:
    evidence = tuple(
        Evidence(fact=f"{name}: {fact}", value=value or "-") for name, value in _one_each(values).items()
    )
    return Finding(id=finding_id, level=level, title=title, evidence=evidence, advice=advice)


def _one_each(values: Mapping[str, str]) -> dict[str, str]:
    """Return the first member of each value: evidence for all without a line for each."""
    seen: dict[str, str] = {}
    for name, value in values.items():
        seen.setdefault(value, name)
    return {name: value for value, name in seen.items()}


def _spread(values: Mapping[str, str]) -> str:
    """``550.54 (62), 535.104 (rank 3, rank 7)``: the most frequent by its count, the others by who has them."""
    counts = Counter(values.values())
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    usual = ordered[0] if counts[ordered[0]] > 1 else None
    words = []
    for value in ordered:
        who = [name for name, own in values.items() if own == value]
        words.append(f"{value or '-'} ({len(who) if value == usual else some_names(who)})")
    return ", ".join(words)


def some_names(names: Sequence[str]) -> str:
    """``rank 3, rank 7, ... (12)``: the first few, then how many in all."""
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown}, ... ({len(names)})"


# ---------------------------------------------------------------------------------------------- many values each
def _variables(members: Sequence[Member]) -> Iterator[Finding]:
    """Variables that all ranks should have alike, or none."""
    environments = {one.name: one.snapshot.facts.environment.value for one in members}
    read = {name: section for name, section in environments.items() if section is not None}
    names = sorted({name for section in read.values() for name in section.variables if _is_common(name)})
    for variable in names:
        values = {name: section.get(variable) or "" for name, section in read.items() if section.complete or section.get(variable)}  # fmt: skip
        if len(set(values.values())) < 2:
            continue
        title = t("{variable} is not the same everywhere: {values}", variable=variable, values=_spread(values))  # fmt: skip
        level: Level = "fail" if variable in _RENDEZVOUS else "warn"
        found = _finding("fleet-variable-differs", level, title, values, f"environment.{variable}", None)
        yield replace(found, subject=variable)


def _is_common(name: str) -> bool:
    # A rank's own address or interface is its own business.
    own = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_HOSTID")
    return (name.startswith(_PREFIXES) and name not in own) or name in (*_RENDEZVOUS, *_ALIKE)


def _data(members: Sequence[Member]) -> Iterator[Finding]:
    """Data that lies under one name and is not the same bytes."""
    by_path: dict[tuple[str, str], dict[str, str]] = {}
    for one in members:
        provenance = one.snapshot.facts.provenance.value
        for data in provenance.data if provenance else ():
            if data.sha256:
                by_path.setdefault((data.path, data.how), {})[one.name] = data.sha256[:12]
    for (path, _), values in sorted(by_path.items()):
        if len(set(values.values())) > 1:
            title = t("{path} does not hold the same data everywhere: {values}", path=path, values=_spread(values))  # fmt: skip
            found = _finding("fleet-data-differs", "fail", title, values, "provenance.data", t("copy it from one of them to all"))  # fmt: skip
            yield replace(found, subject=path)


def _interfaces(members: Sequence[Member]) -> Iterator[Finding]:
    """An interface that a variable names and the machine does not have."""
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        lacking: dict[str, str] = {}
        for one in members:
            environment, host = one.snapshot.facts.environment.value, one.snapshot.facts.host.value
            asked = environment.get(variable) if environment else None
            present = host.network_interfaces if host else None
            if asked and present is not None and not _interface_is_there(asked, present):
                lacking[one.name] = f"{asked}: {', '.join(present)}"
        if lacking:
            title = t("{variable} names an interface that is not there: {who}", variable=variable, who=some_names(list(lacking)))  # fmt: skip
            advice = t(
                "name one that all of them have, a prefix (eth), or what is not to be used (^lo,docker)"
            )
            found = _finding(
                "fleet-interface-missing", "fail", title, lacking, "host.network_interfaces", advice
            )
            yield replace(found, subject=variable)


def _interface_is_there(asked: str, present: Sequence[str]) -> bool:
    """NCCL's words: a prefix, ``=`` for the whole name, ``^`` for all but."""
    if asked.startswith("^"):
        return True
    exact = asked.startswith("=")
    wanted = asked.removeprefix("=").split(",")
    return any(name == one if exact else name.startswith(one) for name in present for one in wanted if one)


def _clocks(members: Sequence[Member]) -> Iterator[Finding]:
    known = {one.name: one.clock_s for one in members if one.clock_s is not None and isfinite(one.clock_s)}
    if not known:
        return
    middle = median(known.values())
    off = {name: f"{value - middle:+.1f} s" for name, value in known.items() if abs(value - middle) > CLOCK_SKEW_S}  # fmt: skip
    if off:
        words = ", ".join(f"{name} {value}" for name, value in list(off.items())[:NAMES_SHOWN])
        title = t("clocks differ by more than {seconds} s: {words}", seconds=CLOCK_SKEW_S, words=words)
        yield _finding("fleet-clock-skew", "warn", title, off, "clock", t("set them by one time server (timedatectl, chrony); logs and time-outs are compared across ranks"))  # fmt: skip


def _stragglers(members: Sequence[Member]) -> Iterator[Finding]:
    """Who takes much longer than most for the same work."""
    for measure in sorted({name for one in members for name in one.measures}):
        taken = {one.name: one.measures.get(measure, nan) for one in members}
        known = {name: seconds for name, seconds in taken.items() if isfinite(seconds)}
        middle = median(known.values()) if known else 0.0
        slow = {name: seconds for name, seconds in known.items() if seconds > STRAGGLER_RATIO * middle}
        if len(known) < 2 or not slow or middle <= 0:
            continue
        worst = max(slow, key=lambda name: slow[name])
        title = t("{who} took {times} times as long as most for {measure}",
                  who=some_names(sorted(slow, key=lambda name: -slow[name])), times=f"{slow[worst] / middle:.1f}", measure=measure)  # fmt: skip
        values = {name: f"{seconds:.4f} s" for name, seconds in {**slow, "median": middle}.items()}
        yield _finding("fleet-straggler", "warn", title, values, measure, t("every step waits for it: look at its clocks, its throttling and who else is on that machine (`doctor check` there)"))  # fmt: skip


# ---------------------------------------------------------------------------------------------- what each has
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
