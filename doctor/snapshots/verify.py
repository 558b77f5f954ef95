"""An environment held against a snapshot in levels: versions, digests over RECORD, the files themselves. Pure.

Each level includes those before it. What a level asks for and the snapshot or the environment cannot answer is said, and
never counts as equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from doctor.model import Content, Distribution, Packages, Record, Snapshot, Text, t
from doctor.snapshots.diff import new_failures
from doctor.snapshots.diff_machine import machine_differences
from doctor.snapshots.diff_packages import contents_of, same_version
from doctor.snapshots.differences import Difference
from doctor.snapshots.meanings import kind_of

Level = Literal["versions", "record", "files", "proof"]
LEVELS: tuple[Level, ...] = ("versions", "record", "files", "proof")
Outcome = Literal["missing", "version", "bytes", "damaged", "extra", "not-compared"]


class FileCheck(Record, frozen=True):
    """The files of one distribution, read again and held against its RECORD."""

    name: str
    files: int = 0
    damaged: tuple[str, ...] = ()
    """Files that are missing or not what RECORD says."""
    why: Text | None = None
    """Why they could not be checked."""


class Deviation(Record, frozen=True):
    name: str
    outcome: Outcome
    expected: str = ""
    found: str = ""
    files: tuple[str, ...] = ()
    why: Text | None = None

    @property
    def counts(self) -> bool:
        """Whether it makes the environment another one. A package more counts where numbers could pass through it."""
        return self.outcome in ("missing", "version", "bytes", "damaged") or (
            self.outcome == "extra" and kind_of(self.name) in ("algorithms", "kernels")
        )


class ProofCheck(Record, frozen=True):
    """The first steps of the snapshot's run, trained here and held against what was kept."""

    steps: int = 0
    expected: str = ""
    found: str = ""
    """``sha256:HEX`` over every bit of those steps; empty: not computed."""
    why: Text | None = None
    """Why they could not be compared."""

    @property
    def differs(self) -> bool:
        return bool(self.found) and self.found != self.expected


class Verification(Record, frozen=True):
    level: Level
    """How deep was compared; less than asked where ``why`` says so."""
    equal: int
    """Packages that are equal at ``level``."""
    deviations: tuple[Deviation, ...] = ()
    machine: tuple[Difference, ...] = ()
    """Driver, cards, CPU, Python and variables that are not those of the snapshot, and what the doctor fails here only."""
    files: int = 0
    why: Text | None = None
    """Why packages could not be compared at all, or not as deeply as was asked."""
    proof: ProofCheck | None = None
    chosen: int = 0
    """How many deviations are those of a restore with --nearest."""

    @property
    def differs(self) -> bool:
        return any(one.counts for one in self.deviations) or (self.proof is not None and self.proof.differs)

    @property
    def incomplete(self) -> bool:
        return (
            self.why is not None
            or (self.proof is not None and self.proof.why is not None)
            or any(one.outcome == "not-compared" for one in self.deviations)
        )


def verify(
    reference: Snapshot, here: Snapshot, level: Level, checked: Mapping[str, FileCheck] | None = None
) -> Verification:
    """Return how ``here`` deviates from ``reference``; ``checked`` holds the re-read files for the level ``files``."""
    wanted, there = reference.facts.packages.value, here.facts.packages.value
    machine = (*new_failures(reference, here), *machine_differences(reference, here))
    if wanted is None or there is None:
        side = t("the snapshot") if wanted is None else t("this environment")
        why = t("the packages of {side} were not read", side=str(side))
        return Verification(level=level, equal=0, machine=machine, why=why)
    mine, theirs = contents_of(reference), contents_of(here)
    without_digests = level != "versions" and not mine
    if without_digests:
        level = "versions"
    deviations: list[Deviation] = []
    equal = 0
    for item in _first_copies(wanted):
        found = there.get(item.name)
        rows = list(
            _of_package(item, found, mine.get(item.name), theirs.get(item.name), level, checked or {})
        )
        deviations += rows
        equal += not rows
    deviations += _extras(wanted, there)
    return Verification(
        level=level, equal=equal, deviations=tuple(deviations), machine=machine,
        files=sum(one.files for one in (checked or {}).values()),
        why=t("the snapshot holds no digests: only versions were compared") if without_digests else None,
    )  # fmt: skip


def _first_copies(packages: Packages) -> list[Distribution]:
    return [item for item in packages.items if packages.get(item.name) is item]


def _of_package(
    item: Distribution, found: Distribution | None, mine: Content | None, theirs: Content | None, level: Level,
    checked: Mapping[str, FileCheck],
) -> Iterator[Deviation]:  # fmt: skip
    if found is None:
        yield Deviation(name=item.name, outcome="missing", expected=item.version)
    elif not same_version(item.version, found.version):
        yield Deviation(name=item.name, outcome="version", expected=item.version, found=found.version)
    elif level != "versions":
        contents = list(_of_content(item, mine, theirs))
        yield from contents
        if level in ("files", "proof") and not contents:
            yield from _of_files(item, theirs, checked.get(item.name))


def _of_content(item: Distribution, mine: Content | None, theirs: Content | None) -> Iterator[Deviation]:
    if mine is None or not (mine.record_sha256 or mine.editable):
        why = mine.why if mine and mine.why else t("the snapshot holds no digest of it")
        yield Deviation(name=item.name, outcome="not-compared", expected=item.version, why=why)
    elif theirs is None:
        why = t("its content could not be read here")
        yield Deviation(name=item.name, outcome="not-compared", expected=item.version, why=why)
    elif mine.editable or theirs.editable:
        yield from _of_source(item, mine, theirs)
    elif not theirs.record_sha256:
        why = theirs.why or t("its content could not be read here")
        yield Deviation(name=item.name, outcome="not-compared", expected=item.version, why=why)
    elif mine.record_sha256 != theirs.record_sha256:
        yield Deviation(
            name=item.name,
            outcome="bytes",
            expected=mine.record_sha256[7:23],
            found=theirs.record_sha256[7:23],
        )


def _of_source(item: Distribution, mine: Content, theirs: Content) -> Iterator[Deviation]:
    one, other = mine.git, theirs.git
    if not (mine.editable and theirs.editable and one and other and one.commit and other.commit):
        why = t("it runs from a source folder whose state is not known on both sides")
        yield Deviation(name=item.name, outcome="not-compared", expected=item.version, why=why)
    elif one.commit != other.commit:
        yield Deviation(name=item.name, outcome="bytes", expected=one.commit[:12], found=other.commit[:12])
    elif one.dirty and other.dirty and not (one.patch_sha256 and other.patch_sha256):
        why = t("its source folder has changes since the commit that were not kept")
        yield Deviation(name=item.name, outcome="not-compared", expected=item.version, why=why)
    elif (bool(one.dirty), one.patch_sha256) != (bool(other.dirty), other.patch_sha256):
        why = t("its source folder has other changes since the commit")
        yield Deviation(
            name=item.name, outcome="bytes", expected=one.commit[:12], found=other.commit[:12], why=why
        )


def _of_files(item: Distribution, theirs: Content | None, checked: FileCheck | None) -> Iterator[Deviation]:
    if theirs is not None and theirs.editable:
        return
    if checked is None or checked.why is not None:
        why = checked.why if checked else t("its files were not read")
        yield Deviation(name=item.name, outcome="not-compared", expected=item.version, why=why)
    elif checked.damaged:
        yield Deviation(name=item.name, outcome="damaged", expected=item.version, files=checked.damaged)


def _extras(wanted: Packages, there: Packages) -> Iterator[Deviation]:
    for item in _first_copies(there):
        if wanted.is_missing(item.name):
            yield Deviation(name=item.name, outcome="extra", found=item.version)
