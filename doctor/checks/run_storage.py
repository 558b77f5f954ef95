"""Checks on where a run writes: quotas, refused writes, room for its checkpoints. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.storage import GB, gb, left, mount_evidence, roomier
from doctor.model import (
    Evidence,
    Finding,
    Level,
    Mount,
    Reading,
    Storage,
    Text,
    Workload,
    WriteProbe,
    t,
)

MB = 1 << 20
EDQUOT = 122
"""errno of Linux: a quota is used up."""


def _probe_of(storage: Storage, path: str) -> WriteProbe | None:
    return next(
        (
            probe
            for probe in storage.write_probes
            if probe.path == path
            or path.startswith(probe.path.rstrip("/") + "/")
            or probe.path.startswith(path.rstrip("/") + "/")
        ),
        None,
    )


def _quota_left(mount: Mount) -> int | None:
    if mount.quota_bytes is None or mount.quota_used_bytes is None:
        return None
    return max(0, mount.quota_bytes - mount.quota_used_bytes)


@check("quota-exceeded-on-target")
def targets_have_quota(storage: Storage, workload: Reading[Workload]) -> Iterator[Finding]:
    """Is a quota used up where the run writes, whatever df says?"""
    for probe in storage.write_probes:
        if probe.errno == EDQUOT:
            mount = storage.mount(probe.path)
            yield _quota_finding(storage, probe.path, mount, storage.write_probes.index(probe))
    said = {probe.path for probe in storage.write_probes if probe.errno == EDQUOT}
    path = workload.value.output_dir if workload.value else None
    mount = storage.mount(path) if path else None
    spare = _quota_left(mount) if mount else None
    if path and mount and spare is not None and not said and spare < GB:
        yield _quota_finding(storage, path, mount, None)


def _quota_finding(storage: Storage, path: str, mount: Mount | None, probe: int | None) -> Finding:
    spare = _quota_left(mount) if mount else None
    free = mount.free_bytes if mount else None
    if probe is not None:
        title = (
            t(
                "writing to {path} is refused: disk quota exceeded (errno 122), although the file system shows {free} GB free",
                path=path,
                free=gb(free),
            )
            if free
            else t("writing to {path} is refused: disk quota exceeded (errno 122)", path=path)
        )
    else:
        title = t(
            "the quota on {mount} leaves {spare} MB for {path}",
            mount=mount.path if mount else path,
            spare=(spare or 0) >> 20,
            path=path,
        )
    proof = mount_evidence(storage, mount, "quota_bytes", "quota_used_bytes", "free_bytes") if mount else ()
    if probe is not None:
        proof = (Evidence(fact=f"storage.write_probes[{probe}].errno", value="122"), *proof)
    return Finding(
        id="quota-exceeded-on-target",
        level="fail" if probe is not None or not spare else "warn",
        subject=path,
        title=title,
        evidence=proof,
        advice=t(
            "Delete files of your own there (quota -s; du -xh -d1 {path} | sort -h | tail), ask for more quota, or write elsewhere. df shows the whole volume, not your share.",
            path=path,
        ),
        cause_of=("checkpoint-budget-exceeds-disk", "target-not-writable", "disk-nearly-full"),
    )


def checkpoint_bytes(workload: Workload) -> tuple[int | None, int | None]:
    """Return the size of one checkpoint as (surely, probably); None: nothing is known of the model.

    Weights take 4 bytes a parameter, Adam's two moments 8 more where the optimizer is named and saved; where it is not,
    2 bytes (weights in half precision alone) are sure. A size that a profile computed counts as sure.
    """
    if workload.checkpoint_bytes is not None:
        return workload.checkpoint_bytes, workload.checkpoint_bytes
    parameters = workload.model_parameters
    if parameters is None:
        return None, None
    if workload.training_args.get("save_only_model") is True:
        return 2 * parameters, 4 * parameters
    optimizer = str(workload.optimizer or workload.training_args.get("optim") or "").lower()
    if "adam" in optimizer and "8bit" not in optimizer:
        return 12 * parameters, 12 * parameters
    return 2 * parameters, 12 * parameters


def _kept(workload: Workload) -> int:
    limit = workload.checkpoints_kept or workload.training_args.get("save_total_limit")
    return limit if isinstance(limit, int) and limit > 0 else 1


@check("checkpoint-budget-exceeds-disk")
def checkpoints_fit_the_disk(storage: Storage, workload: Workload) -> Iterator[Finding]:
    """Do the checkpoints that the run keeps, and the one being written, fit where it writes?"""
    path = workload.output_dir
    mount = storage.mount(path) if path else None
    room, quota = (mount.free_bytes, _quota_left(mount)) if mount else (None, None)
    if not path or mount is None or room is None or mount.error or (quota is not None and quota < room):
        return
    surely, probably = checkpoint_bytes(workload)
    kept = _kept(workload) + 1
    level: Level | None = None
    if room < GB // 2 and surely is None:
        level, needed = "fail", None
    elif surely is not None and surely * kept > room:
        level, needed = "fail", surely * kept
    elif probably is not None and probably * kept > room:
        level, needed = "warn", probably * kept
    if level is None:
        return
    yield Finding(
        id="checkpoint-budget-exceeds-disk",
        level=level,
        subject=mount.path,
        title=t(
            "the run writes to {path}, which lies on {mount} with {free} GB free: no checkpoint fits",
            path=path,
            mount=mount.path,
            free=gb(room),
        )
        if needed is None
        else t(
            "{count} {count:checkpoint of this run takes|checkpoints of this run take} {needed} GB, {mount} (where {path} lies) has {free} GB free",
            count=kept,
            needed=gb(needed),
            mount=mount.path,
            path=path,
            free=gb(room),
        ),
        evidence=(
            *mount_evidence(storage, mount, "free_bytes"),
            *evidence(
                workload__output_dir=path,
                workload__model_parameters=workload.model_parameters,
                workload__checkpoint_bytes=workload.checkpoint_bytes,
            ),
        ),
        advice=_room_advice(storage, mount, needed or 10 * GB),
        cause_of=("disk-nearly-full",),
    )


def _room_advice(storage: Storage, mount: Mount, needed: int) -> Text:
    other = roomier(storage, mount, needed)
    if other:
        return t(
            "Write to {other} ({room} GB free), or delete old checkpoints under {mount} and keep fewer (save_total_limit=1, save_only_model=True).",
            other=other.path,
            room=gb(left(other) or 0),
            mount=mount.path,
        )
    return t(
        "Delete old checkpoints under {mount} and keep fewer (save_total_limit=1, save_only_model=True).",
        mount=mount.path,
    )
