"""Can that machine take this environment, and what would have to change: before renting, offline. Pure.

The environment's sections of the snapshot and the machine's sections of the target make one machine, which is judged like
any other; beside that stand what only a restore asks: architecture, C library, Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from doctor.checks.advice import capabilities_of
from doctor.checks.versions import minor
from doctor.judge import judge
from doctor.model import (
    Driver,
    Facts,
    Finding,
    Gpu,
    Gpus,
    Host,
    Python,
    Reading,
    Record,
    Snapshot,
    Text,
    ok,
    t,
)
from doctor.recommend import recommend, target_from, target_of
from doctor.snapshots.diff_machine import machine_differences
from doctor.snapshots.differences import Difference
from doctor.snapshots.wheel_tags import needs
from doctor.tables.drivers import cuda_of_driver
from doctor.tables.gpus import capability_of, row_of

MACHINE = ("host", "container", "platform", "driver", "gpus", "kernel_log", "storage")
ENVIRONMENT = ("python", "packages", "torch")
Answer = Literal["fits", "does-not-fit", "unknown"]


class Obstacle(Record, frozen=True):
    """One thing that stands in the way; ``unknown``: it could not be told whether it does."""

    subject: str
    level: Literal["fail", "warn", "unknown"]
    why: Text
    change: Text | None = None
    """What would have to be different."""
    finding: str = ""
    """Id of the doctor's finding, for `doctor help ID`."""


class Fit(Record, frozen=True):
    answer: Answer
    obstacles: tuple[Obstacle, ...] = ()
    numbers: tuple[Difference, ...] = ()
    """What of the machine is another, with what it means for the numbers of a run that does fit."""


def described_target(
    driver: str | None, cards: Sequence[str], python: str | None, glibc: str | None
) -> Snapshot:
    """Return the machine that the options describe; what is not named reads as not looked at."""
    facts: dict[str, Reading[object]] = {}
    if driver:
        facts["driver"] = ok(Driver(version=driver, cuda_version=cuda_of_driver(driver)))
    if cards:
        facts["gpus"] = ok(Gpus(items=tuple(_card(index, name) for index, name in enumerate(cards))))
    if python:
        facts["python"] = ok(Python(version=python))
    if glibc:
        facts["host"] = ok(Host(glibc=glibc))
    return Snapshot(label="--target", facts=Facts(**facts))  # type: ignore[arg-type]


def _card(index: int, name: str) -> Gpu:
    row = row_of(name)
    known, _ = target_from(None, (name,), None)
    capability = capability_of(name) or (known.capabilities[0] if known.capabilities else "")
    return Gpu(index=index, name=str(row["name"]) if row else name, compute_capability=capability)


def fit(snapshot: Snapshot, target: Snapshot) -> Fit:
    """Return whether ``target`` can take the environment of ``snapshot``."""
    obstacles = (*_wheels(snapshot, target), *_interpreter(snapshot, target), *_cuda(snapshot, target))
    levels = {one.level for one in obstacles}
    answer: Answer = "does-not-fit" if "fail" in levels else "unknown" if "unknown" in levels else "fits"
    numbers = tuple(one for one in machine_differences(snapshot, target) if one.section == "machine")
    return Fit(answer=answer, obstacles=obstacles, numbers=numbers)


# ---------------------------------------------------------------------------------------- wheels and Python
def _wheels(snapshot: Snapshot, target: Snapshot) -> Iterator[Obstacle]:
    packages = snapshot.facts.packages.value
    if packages is None:
        yield Obstacle(subject="packages", level="unknown", why=t("the snapshot holds no packages"))
        return
    mine, host = snapshot.facts.host.value, target.facts.host.value
    arch, glibc = (host.arch, host.glibc) if host else (None, None)
    if arch and mine and mine.arch and arch != mine.arch:
        built = sorted({need.arch for _, need in needs(packages) if need.arch})
        yield Obstacle(
            subject="arch", level="fail", why=t("its wheels are for {built}, that machine is {arch}", built=", ".join(built) or mine.arch, arch=arch),
            change=t("a machine with a {arch} processor", arch=mine.arch),
        )  # fmt: skip
    asking = {item.name: need.glibc for item, need in needs(packages) if need.glibc}
    if glibc is None:
        if asking:
            floor = max(asking.values())
            yield Obstacle(subject="glibc", level="unknown", why=t("the C library of that machine is not known; these wheels want glibc {floor} or newer", floor=_dotted(floor)))  # fmt: skip
        return
    beyond = sorted(name for name, floor in asking.items() if floor > _pair(glibc))
    if beyond:
        floor = max(asking[name] for name in beyond)
        yield Obstacle(
            subject="glibc", level="fail",
            why=t("wheels of {packages} want glibc {floor} or newer, that machine has {glibc}", packages=_some(beyond), floor=_dotted(floor), glibc=glibc),
            change=t("a system or an image with glibc {floor} or newer, or older releases of {packages}", floor=_dotted(floor), packages=_some(beyond)),
        )  # fmt: skip


def _interpreter(snapshot: Snapshot, target: Snapshot) -> Iterator[Obstacle]:
    mine, theirs = snapshot.facts.python.value, target.facts.python.value
    packages = snapshot.facts.packages.value
    wanted = minor(mine.version) if mine else None
    if wanted is None:
        yield Obstacle(subject="python", level="unknown", why=t("the snapshot does not say which Python it is for"))  # fmt: skip
    elif theirs is not None and theirs.version and minor(theirs.version) != wanted:
        bound = sorted(item.name for item, need in needs(packages) if need.python) if packages else []
        yield Obstacle(
            subject="python", level="fail",
            why=t("it is for Python {wanted}, there is {there}; {count} of its packages are compiled for {wanted}", wanted=wanted, there=theirs.version, count=len(bound)),
            change=t("Python {wanted} on that machine: `uv python install {wanted}` or `conda create -n env python={wanted}`", wanted=wanted),
        )  # fmt: skip


def _pair(version: str) -> tuple[int, int]:
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"


def _some(names: list[str], shown: int = 4) -> str:
    return ", ".join(names[:shown]) + (f" (+{len(names) - shown})" if len(names) > shown else "")


# ---------------------------------------------------------------------------------------- driver and cards
def merged(snapshot: Snapshot, target: Snapshot) -> Snapshot:
    """Return the target's machine with the snapshot's environment on it."""
    sections = {name: getattr(target.facts, name) for name in MACHINE}
    sections |= {name: getattr(snapshot.facts, name) for name in ENVIRONMENT}
    return Snapshot(label=target.label, taken_at=target.taken_at, facts=Facts(**sections))


def _cuda(snapshot: Snapshot, target: Snapshot) -> Iterator[Obstacle]:
    torch = snapshot.facts.torch.value
    if torch is not None and torch.cuda:
        yield from _not_named(target)
    alone = Snapshot(facts=Facts(**{name: getattr(snapshot.facts, name) for name in ENVIRONMENT}))
    known = {(one.id, one.subject) for one in judge(alone).findings()}
    both = merged(snapshot, target)
    silent = {"glibc-too-old-for-wheel"}  # said by the wheels' tags above
    if torch is not None and torch.cuda == "" and torch.hip is None:
        silent.add("torch-cpu-only-build")  # so was it where it came from
    of_target = {(one.id, one.subject) for one in judge(_bare(target)).findings()}
    for finding in judge(both).findings():
        expected = (finding.id, finding.subject) in known | of_target or finding.id in silent
        if finding.level in ("fail", "warn") and not expected:
            yield _from_finding(finding, both)


def _bare(target: Snapshot) -> Snapshot:
    """What is wrong with the machine whatever is installed on it says nothing of this environment."""
    return Snapshot(facts=Facts(**{name: getattr(target.facts, name) for name in MACHINE}))


def _not_named(target: Snapshot) -> Iterator[Obstacle]:
    if target.facts.driver.status in ("skipped", "failed"):
        why = target.facts.driver.why or t("the driver of that machine is not named: whether it runs this CUDA build cannot be told")  # fmt: skip
        yield Obstacle(subject="driver", level="unknown", why=why)
    gpus = target.facts.gpus
    if gpus.status in ("skipped", "failed"):
        why = gpus.why or t(
            "the card of that machine is not named: whether torch has code for it cannot be told"
        )
        yield Obstacle(subject="gpu", level="unknown", why=why)
    for gpu in gpus.value.items if gpus.value else ():
        if not gpu.compute_capability:
            yield Obstacle(subject=gpu.name, level="unknown", why=t("{card} is in no table: its compute capability is not known", card=gpu.name))  # fmt: skip


def _from_finding(finding: Finding, both: Snapshot) -> Obstacle:
    level: Literal["fail", "warn"] = "fail" if finding.level == "fail" else "warn"
    change = _another_torch(both) if level == "fail" else None
    return Obstacle(
        subject=finding.subject or finding.id,
        level=level,
        why=finding.title,
        change=change,
        finding=finding.id,
    )


def _another_torch(both: Snapshot) -> Text | None:
    target = target_of(both)
    if target.driver is None or not capabilities_of(both.facts.gpus):
        return None
    answer = recommend(target)
    if answer.best is None:
        return answer.ways_out[0] if answer.ways_out else None
    return t(
        "torch {torch}+{tag} runs there: another build, so no longer the same environment",
        torch=answer.best.torch,
        tag=answer.best.tag,
    )
