"""Values that the machines of a fleet hold or took, compared: variables, data, interfaces, clocks, and who is slow. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, nan
from statistics import median

from msgspec.structs import replace

from doctor.checks.storage import is_network
from doctor.fleet_records import NAMES_SHOWN, Member, some_names
from doctor.model import Evidence, Finding, Level, Text, t

STRAGGLER_RATIO = 1.5
"""A machine that takes this many times the median of all is named."""
RATIOS = {"disk_write": 3.0}
"""Where the same hardware differs more from time to time."""
LINK = "link_to_rank_0"
CLOCK_SKEW_S = 2.0
_RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "UCX_", "FI_")
_ALIKE = ("PYTHONHASHSEED", "OMP_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # fmt: skip


def finding_of(
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


def spread(values: Mapping[str, str]) -> str:
    """``550.54 (62), 535.104 (rank 3, rank 7)``: the most frequent by its count, the others by who has them."""
    counts = Counter(values.values())
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    usual = ordered[0] if counts[ordered[0]] > 1 else None
    words = []
    for value in ordered:
        who = [name for name, own in values.items() if own == value]
        words.append(f"{value or '-'} ({len(who) if value == usual else some_names(who)})")
    return ", ".join(words)


def variables(members: Sequence[Member]) -> Iterator[Finding]:
    """Variables that all ranks should have alike, or none."""
    environments = {one.name: one.snapshot.facts.environment.value for one in members}
    read = {name: section for name, section in environments.items() if section is not None}
    names = sorted({name for section in read.values() for name in section.variables if _is_common(name)})
    for variable in names:
        values = {name: section.get(variable) or "" for name, section in read.items() if section.complete or section.get(variable)}  # fmt: skip
        if len(set(values.values())) < 2:
            continue
        title = t("{variable} is not the same everywhere: {values}", variable=variable, values=spread(values))  # fmt: skip
        level: Level = "fail" if variable in _RENDEZVOUS else "warn"
        found = finding_of("fleet-variable-differs", level, title, values, f"environment.{variable}", None)
        yield replace(found, subject=variable)


def _is_common(name: str) -> bool:
    # A rank's own address or interface is its own business.
    own = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_HOSTID")
    return (name.startswith(_PREFIXES) and name not in own) or name in (*_RENDEZVOUS, *_ALIKE)


def data(members: Sequence[Member]) -> Iterator[Finding]:
    """Data that lies under one name and is not the same bytes."""
    by_path: dict[tuple[str, str], dict[str, str]] = {}
    for one in members:
        provenance = one.snapshot.facts.provenance.value
        for data in provenance.data if provenance else ():
            if data.sha256:
                by_path.setdefault((data.path, data.how), {})[one.name] = data.sha256[:12]
    for (path, _), values in sorted(by_path.items()):
        if len(set(values.values())) > 1:
            title = t("{path} does not hold the same data everywhere: {values}", path=path, values=spread(values))  # fmt: skip
            found = finding_of("fleet-data-differs", "fail", title, values, "provenance.data", t("copy it from one of them to all"))  # fmt: skip
            yield replace(found, subject=path)


def mounts(members: Sequence[Member]) -> Iterator[Finding]:
    """A folder of one path that lies on different file systems: shared on some, their own disk on others."""
    told: list[dict[str, str]] = []
    for name in ("cwd", "hf_home", "home"):
        places = {one.name: _file_system(one, name) for one in members}
        known = {who: place for who, place in places.items() if place is not None}
        values = {who: kind for who, (_, kind) in known.items()}
        if len({path for path, _ in known.values()}) != 1 or len(set(values.values())) < 2 or values in told:
            continue
        told.append(values)
        path = next(iter(known.values()))[0]
        title = t(
            "{path} is not on the same file system everywhere: {values}", path=path, values=spread(values)
        )
        advice = t(
            "mount it on all of them; what ranks write there is not seen by the others, and each reads data of its own"
        )
        found = finding_of("fleet-mount-differs", "warn", title, values, f"storage.{name}", advice)
        yield replace(found, subject=path)


def _file_system(member: Member, name: str) -> tuple[str, str] | None:
    """Return a place's path and what it lies on; a network's with its source, which must be the same."""
    storage = member.snapshot.facts.storage.value
    place = storage.place(name) if storage else None
    mount = storage.mount(place.path) if storage and place else None
    if place is None or mount is None or not mount.fstype:
        return None
    return place.path, f"{mount.fstype} {mount.source}".strip() if is_network(mount) else mount.fstype


def interfaces(members: Sequence[Member]) -> Iterator[Finding]:
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
            found = finding_of(
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


def clocks(members: Sequence[Member]) -> Iterator[Finding]:
    known = {one.name: one.clock_s for one in members if one.clock_s is not None and isfinite(one.clock_s)}
    if not known:
        return
    middle = median(known.values())
    off = {name: f"{value - middle:+.1f} s" for name, value in known.items() if abs(value - middle) > CLOCK_SKEW_S}  # fmt: skip
    if off:
        words = ", ".join(f"{name} {value}" for name, value in list(off.items())[:NAMES_SHOWN])
        title = t("clocks differ by more than {seconds} s: {words}", seconds=CLOCK_SKEW_S, words=words)
        yield finding_of("fleet-clock-skew", "warn", title, off, "clock", t("set them by one time server (timedatectl, chrony); logs and time-outs are compared across ranks"))  # fmt: skip


def stragglers(members: Sequence[Member]) -> Iterator[Finding]:
    """Who takes much longer than most for the same work."""
    for measure in sorted({name for one in members for name in one.measures}):
        taken = {one.name: one.measures.get(measure, nan) for one in _alike_in(measure, members)}
        known = {name: seconds for name, seconds in taken.items() if isfinite(seconds)}
        middle = _usual(list(known.values()))
        slow = {
            name: seconds
            for name, seconds in known.items()
            if seconds > RATIOS.get(measure, STRAGGLER_RATIO) * middle
        }
        if len(known) < 2 or not slow or middle <= 0:
            continue
        worst = max(slow, key=lambda name: slow[name])
        title = t("{who} took {times} times as long as most for {measure}",
                  who=some_names(sorted(slow, key=lambda name: -slow[name])), times=f"{slow[worst] / middle:.1f}", measure=measure)  # fmt: skip
        values = {name: f"{seconds:.4f} s" for name, seconds in {**slow, "median": middle}.items()}
        yield finding_of("fleet-straggler", "warn", title, values, measure, t("every step waits for it: look at its clocks, its throttling and who else is on that machine (`doctor check` there)"))  # fmt: skip


def _alike_in(measure: str, members: Sequence[Member]) -> list[Member]:
    """Return the members to compare in a measure: of ways to rank 0 those that leave its machine."""
    if measure != LINK or not members:
        return list(members)
    return [one for one in members if one.host != members[0].host]


def _usual(seconds: Sequence[float]) -> float:
    """Return what most take; of two the faster one's, since half of a slow one's time would hide it."""
    if not seconds:
        return 0.0
    return min(seconds) if len(seconds) == 2 else median(seconds)
