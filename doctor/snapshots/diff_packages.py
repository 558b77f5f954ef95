"""Installed packages of two snapshots: versions, then contents by digest, then editable and VCS commits. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks.versions import parse
from doctor.model import Content, Distribution, GitState, Packages, Provenance, Snapshot, t
from doctor.snapshots.differences import Difference, difference
from doctor.snapshots.meanings import Meaning, of_added, of_bytes, of_missing, of_version


def package_differences(a: Snapshot, b: Snapshot) -> tuple[list[Difference], int, int]:
    """Return the differences, how many packages are equal, and how many of those by content."""
    one, other = a.facts.packages.value, b.facts.packages.value
    if one is None or other is None:
        return [], 0, 0
    mine, theirs = contents_of(a), contents_of(b)
    found: list[Difference] = []
    equal = by_content = 0
    for name in sorted({item.name for item in (*one.items, *other.items)}):
        rows = list(_compare(name, one, other, mine.get(name), theirs.get(name)))
        found += rows
        if not rows and one.get(name) and other.get(name):
            equal += 1
            by_content += comparable(mine.get(name), theirs.get(name))
    return found, equal, by_content


def contents_of(snapshot: Snapshot) -> dict[str, Content]:
    """Return the first copy of each distribution's content."""
    provenance = snapshot.facts.provenance.value or Provenance()
    return {item.name: item for item in reversed(provenance.contents)}


def comparable(a: Content | None, b: Content | None) -> bool:
    return bool(a and b and a.record_sha256 and b.record_sha256)


def same_version(a: str, b: str) -> bool:
    """Whether two versions are one, however they are written (``1.0`` and ``1.0.0``); local parts count."""
    one, other = parse(a), parse(b)
    return a == b or (one is not None and one == other)


def _compare(
    name: str, one: Packages, other: Packages, mine: Content | None, theirs: Content | None
) -> Iterator[Difference]:
    a, b = one.get(name), other.get(name)
    if a is None and b is not None:
        if one.is_missing(name):
            yield difference("packages", name, None, b.version, of_added(name))
    elif b is None and a is not None:
        if other.is_missing(name):
            yield difference("packages", name, a.version, None, of_missing(name, a.requested))
    elif a is not None and b is not None:
        yield from _both(name, a, b, mine, theirs)


def _both(
    name: str, a: Distribution, b: Distribution, mine: Content | None, theirs: Content | None
) -> Iterator[Difference]:
    if not same_version(a.version, b.version):
        yield difference("packages", name, a.version, b.version, of_version(name, a.version, b.version))
        return
    if mine is None or theirs is None:
        return
    if comparable(mine, theirs) and mine.record_sha256 != theirs.record_sha256:
        yield difference("packages", name, _short(mine, a), _short(theirs, b), of_bytes(name))
    elif mine.commit and theirs.commit and mine.commit != theirs.commit:
        yield difference("packages", name, mine.commit[:12], theirs.commit[:12], _other_commit(name))
    elif mine.git and theirs.git:
        yield from source_differences(name, mine.git, theirs.git)
    elif mine.editable != theirs.editable:
        yield difference("packages", name, _kind(mine), _kind(theirs), _editable_on_one_side(name))


def _short(content: Content, item: Distribution) -> str:
    return f"{item.version} {content.record_sha256[7:19]}"


def _kind(content: Content) -> str:
    return "editable" if content.editable else "installed"


def _other_commit(name: str) -> Meaning:
    return Meaning("other-numbers", t("{name} is built from another commit", name=name))


def _editable_on_one_side(name: str) -> Meaning:
    return Meaning("other-numbers", t("{name} runs from a source folder on one side only: its files were not compared", name=name))  # fmt: skip


def source_differences(subject: str, a: GitState, b: GitState) -> Iterator[Difference]:
    """Yield how two working trees differ: commit, then changes."""
    if a.commit and b.commit and a.commit != b.commit:
        yield difference("code", subject, a.commit[:12], b.commit[:12], Meaning("other-numbers", t("the code is another commit")))  # fmt: skip
    elif bool(a.dirty) != bool(b.dirty) or a.patch_sha256 != b.patch_sha256:
        yield difference("code", subject, _described(a), _described(b), Meaning("other-numbers", t("the code has other changes since the commit")))  # fmt: skip
    elif a.dirty and not a.patch_sha256:
        yield difference("code", subject, _described(a), _described(b), Meaning("other-numbers", t("the code has changes since the commit that were not kept: whether they are the same is not known")))  # fmt: skip


def _described(tree: GitState) -> str:
    commit = (tree.commit or "?")[:12]
    return f"{commit} + {tree.patch_bytes or '?'} bytes" if tree.dirty else commit
