"""Cures for full and small disks: caches moved to the disk that has room, or deleted where they fill themselves again. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from doctor.checks.storage import GB, left, roomier
from doctor.fixes import fix
from doctor.fixes.shell import set_variables
from doctor.model import Finding, Fix, Mount, MovePath, Place, RemovePath, Snapshot, Step, Storage, Text, t

REGENERABLE = ("pip_cache", "uv_cache", "torchinductor_cache", "triton_cache", "cuda_cache", "wandb_cache")
"""Places whose content is made anew when it is wanted: nothing of the user's own lies in them."""

MOVABLE = {
    "hf_home": "HF_HOME",
    "torch_home": "TORCH_HOME",
    "modelscope_cache": "MODELSCOPE_CACHE",
}
"""Places that are worth keeping -> the variable that says where they are."""


@fix("hf-cache-on-small-disk")
def move_hub_cache(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The check's advice names the cache, where it should lie, and the variable."""
    words = finding.advice.params if finding.advice else {}
    cache, target, name = (str(words.get(key, "")) for key in ("cache", "target", "variable"))
    if not (cache and target and name):
        return t("where the cache could go is not known")
    steps = set_variables(snapshot, {name: target})
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("move {path} to {target} and say so in {variable}", path=cache, target=target, variable=name),
        steps=(MovePath(source=cache, target=target), *steps),
        touches=("storage", "environment"),
        risk=t("nothing may download into it meanwhile; the old path stays valid as a link"),
    )


@fix("disk-nearly-full", "inode-exhausted", "quota-exceeded-on-target")
def make_room(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    storage = snapshot.facts.storage.value or Storage()
    mount = storage.mount(finding.subject) if finding.subject.startswith("/") else None
    if mount is None:
        return t("which disk is meant is not known")
    steps = [*_deletions(storage, mount, snapshot), *_moves(storage, mount, snapshot)]
    if not steps:
        return t(
            "no cache that fills itself again lies on {mount}, and what else is there is yours to judge: du -xh -d1 {mount} | sort -h | tail",
            mount=mount.path,
        )
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("make room on {mount}: caches only", mount=mount.path),
        steps=tuple(steps),
        touches=("storage", "environment"),
        risk=t("deleted caches are downloaded or compiled again when they are wanted"),
    )


def _is_on(storage: Storage, place: Place | None, mount: Mount) -> bool:
    return bool(place and place.exists and storage.mount(place.path) is mount)


def _deletions(storage: Storage, mount: Mount, snapshot: Snapshot) -> Iterator[Step]:
    environment = snapshot.facts.environment.value
    linked = environment is not None and environment.get("UV_LINK_MODE") == "symlink"
    for name in REGENERABLE:
        place = storage.place(name)
        if name == "uv_cache" and linked:
            continue  # the environments' own files are links into it
        if place and _is_on(storage, place, mount):
            yield RemovePath(path=place.path, keep=False)


def _moves(storage: Storage, mount: Mount, snapshot: Snapshot) -> Iterator[Step]:
    other = roomier(storage, mount, 20 * GB)
    if other is None or (left(other) or 0) < 3 * (left(mount) or 0):
        return
    variables: dict[str, str | None] = {}
    for name, variable in MOVABLE.items():
        place = storage.place(name)
        if place and _is_on(storage, place, mount):
            target = f"{other.path.rstrip('/')}/{posixpath.basename(place.path.rstrip('/'))}"
            yield MovePath(source=place.path, target=target)
            variables[variable] = target
    if variables:
        yield from set_variables(snapshot, variables)
