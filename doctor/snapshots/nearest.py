"""The nearest set that runs, where the exact one cannot be had or does not run: each difference with its reason. Pure.

Which versions there are, a resolver says (doctor.restore_nearest asks it, by doctor.snapshots.nearest_wishes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from doctor.machine import with_facts
from doctor.model import Content, Distribution, Packages, Provenance, Record, Snapshot, Text, t
from doctor.snapshots.diff_packages import contents_of
from doctor.snapshots.formats.sources import sources
from doctor.snapshots.nearest_wishes import OF_TORCH, Swap, Wish
from doctor.snapshots.verify import Deviation, Verification
from doctor.snapshots.wheel_tags import need_of


class Change(Record, frozen=True):
    """One way in which the nearest set is another one."""

    name: str
    wanted: str
    """Version; empty: it was not there."""
    got: str
    """Version; empty: it is left out."""
    why: Text


class Nearest(Record, frozen=True):
    """What to restore in the place of a snapshot."""

    snapshot: Snapshot
    changes: tuple[Change, ...] = ()


def nearest(
    snapshot: Snapshot, here: Snapshot, wishes: Iterable[Wish], chosen: Mapping[str, str], swap: Swap | None
) -> Nearest:
    """Return the snapshot of the set that a resolver chose (name -> version), and each change with its reason."""
    packages = snapshot.facts.packages.value or Packages()
    asked = {one.name: one for one in wishes}
    kept = {one.name for one in sources(snapshot) if one.kind not in ("index", "none")}
    firsts = {item.name: item for item in packages.items if packages.get(item.name) is item}
    contents = contents_of(snapshot)
    items: list[Distribution] = []
    held: list[Content] = []
    changes: list[Change] = []
    for name, item in sorted(firsts.items()):
        got = chosen.get(name)
        if name in kept or got == item.version:
            items.append(item)
            content = contents.get(name)
            other = None if name in kept else _other_file(item, here)
            held += [] if content is None else [_unlocked(content) if other else content]
            changes += [Change(name=name, wanted=item.version, got=item.version, why=other)] if other else []
        else:
            items += [Distribution(name=name, version=got)] if got else []
            changes.append(
                Change(name=name, wanted=item.version, got=got or "", why=_why(name, asked.get(name), swap))
            )
    for name in sorted(set(chosen) - set(firsts)):
        items.append(Distribution(name=name, version=chosen[name]))
        changes.append(
            Change(
                name=name, wanted="", got=chosen[name], why=t("what could be had of the others asks for it")
            )
        )
    return Nearest(snapshot=_with(snapshot, items, held), changes=tuple(changes))


def _why(name: str, wish: Wish | None, swap: Swap | None) -> Text:
    if wish is not None and wish.why is not None:
        return wish.why
    if swap is not None and OF_TORCH.fullmatch(name):
        return t("it belongs to the torch build that does not run here")
    return t("it cannot be had from any index: see `doctor snapshot convert --format requirements`")


def _other_file(item: Distribution, here: Snapshot) -> Text | None:
    """Return why the very file cannot be installed here though the version can; None: it can, or nothing says."""
    need, host = need_of(item.wheel_tags), here.facts.host.value
    glibc = host.glibc if host else None
    if need.glibc and glibc and need.glibc > _pair(glibc):
        return t("the proven file wants glibc {floor}, here is {glibc}: another file of the same version", floor=".".join(map(str, need.glibc)), glibc=glibc)  # fmt: skip
    if need.arch and host and host.arch and need.arch != host.arch:
        return t("the proven file is for {arch}, this machine is {here}: another file of the same version", arch=need.arch, here=host.arch)  # fmt: skip
    return None


def _pair(version: str) -> tuple[int, int]:
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _unlocked(content: Content) -> Content:
    return msgspec.structs.replace(content, file_url="", file_sha256="")


def _with(snapshot: Snapshot, items: list[Distribution], contents: list[Content]) -> Snapshot:
    packages = msgspec.structs.replace(snapshot.facts.packages.value or Packages(), items=tuple(items))
    provenance = msgspec.structs.replace(
        snapshot.facts.provenance.value or Provenance(), contents=tuple(contents)
    )
    return with_facts(
        snapshot,
        packages=msgspec.structs.replace(snapshot.facts.packages, value=packages),
        provenance=msgspec.structs.replace(snapshot.facts.provenance, status="ok", value=provenance),
    )


# ---------------------------------------------------------------------------------------- said again by verify
def explained(found: Verification, changes: Sequence[Change]) -> Verification:
    """Return ``found`` with the reason at each deviation that was chosen: it stays a deviation."""
    chosen = {one.name: one for one in changes}
    if not chosen:
        return found
    rows = tuple(_with_reason(one, chosen.get(one.name)) for one in found.deviations)
    return msgspec.structs.replace(
        found,
        deviations=rows,
        chosen=sum(one.name in chosen for one in rows if one.outcome != "not-compared"),
    )


def _with_reason(row: Deviation, change: Change | None) -> Deviation:
    if (
        change is None
        or row.outcome in ("damaged", "not-compared")
        or ((row.found or "") != change.got and row.outcome != "bytes")
    ):
        return row
    return msgspec.structs.replace(row, why=change.why)
