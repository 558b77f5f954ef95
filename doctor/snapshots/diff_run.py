"""Code, data and run settings of two snapshots. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from doctor.model import DataFingerprint, Provenance, RunSettings, Snapshot, t
from doctor.snapshots.diff_packages import source_differences
from doctor.snapshots.differences import Difference, difference
from doctor.snapshots.meanings import MEASURED, Meaning


def run_differences(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    one, other = a.facts.provenance.value, b.facts.provenance.value
    if one is None or other is None:
        return
    if one.git and other.git:
        yield from source_differences("git", one.git, other.git)
    yield from _data(one, other)
    if one.run and other.run:
        yield from _settings(one.run, other.run)


def _data(one: Provenance, other: Provenance) -> Iterator[Difference]:
    """Fingerprints are matched by path, else by the last part of it: data lies elsewhere on another machine."""
    theirs = {row.path: row for row in other.data}
    by_name = {row.path.rpartition("/")[2]: row for row in other.data}
    for mine in one.data:
        row = theirs.get(mine.path) or by_name.get(mine.path.rpartition("/")[2])
        if row is None or not (mine.sha256 and row.sha256):
            continue
        if mine.sha256 != row.sha256 and (mine.how == row.how or mine.size_bytes != row.size_bytes):
            meaning = Meaning("other-numbers", t("the data is not the same"))
            yield difference("data", mine.path, _described(mine), _described(row), meaning)


def _described(row: DataFingerprint) -> str:
    return f"{row.size_bytes} bytes {row.sha256[7:19]}"


# Where they write and how they show it; no number hangs on it.
_SILENT = ("run.name", "run.output", "monitor.", "log.", "save.", "track")


def _settings(one: RunSettings, other: RunSettings) -> Iterator[Difference]:
    for name, mine, theirs in _changed(one.seeds, other.seeds):
        yield difference("run", f"seed {name}", mine, theirs, Meaning("other-numbers", t("another seed")))
    for name, mine, theirs in _changed(one.settings, other.settings):
        yield difference("run", name, mine, theirs, _of_setting(name))
    for name, mine, theirs in _changed(one.profile, other.profile):
        meaning = (
            Meaning("same-bits", t("it names or records the run, nothing else"))
            if name.startswith(_SILENT)
            else Meaning("other-numbers", t("the run is told something else"))
        )
        yield difference("run", name, mine, theirs, meaning)


def _of_setting(name: str) -> Meaning:
    if name == "threads":
        return Meaning(
            "same-numbers", t("with another number of threads sums are split differently"), MEASURED
        )
    if name == "workers":
        return Meaning("other-numbers", t("with another number of loader workers random augmentation draws other numbers"), MEASURED)  # fmt: skip
    return Meaning("other-numbers", t("the run is told something else"))


def _changed(one: Mapping[str, object], other: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield name, one.get(name), other.get(name)
