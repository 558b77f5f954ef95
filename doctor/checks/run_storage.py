"""Checks on where a run reads and writes: room for its checkpoints, disks that do not last, disks that are slow. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.storage import GB, gb, is_network, left, mount_evidence, roomier
from doctor.model import (
    Container,
    Evidence,
    Finding,
    Level,
    Mount,
    Platform,
    Reading,
    Storage,
    Text,
    Workload,
    WriteProbe,
    t,
)
from doctor.tables import load

MB = 1 << 20
EDQUOT, ENOSPC, EROFS, EACCES = 122, 28, 30, 13
"""errno numbers of Linux."""


def _probe_of(storage: Storage, path: str) -> WriteProbe | None:
    return next((probe for probe in storage.write_probes if probe.path == path or path.startswith(probe.path.rstrip("/") + "/") or probe.path.startswith(path.rstrip("/") + "/")), None)


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
        title = t("writing to {path} is refused: disk quota exceeded (errno 122), although the file system shows {free} GB free", path=path, free=gb(free)) if free else t("writing to {path} is refused: disk quota exceeded (errno 122)", path=path)
    else:
        title = t("the quota on {mount} leaves {spare} MB for {path}", mount=mount.path if mount else path, spare=(spare or 0) >> 20, path=path)
    proof = mount_evidence(storage, mount, "quota_bytes", "quota_used_bytes", "free_bytes") if mount else ()
    if probe is not None:
        proof = (Evidence(fact=f"storage.write_probes[{probe}].errno", value="122"), *proof)
    return Finding(
        id="quota-exceeded-on-target",
        level="fail" if probe is not None or not spare else "warn",
        subject=path,
        title=title,
        evidence=proof,
        advice=t("Delete files of your own there (quota -s; du -xh -d1 {path} | sort -h | tail), ask for more quota, or write elsewhere. df shows the whole volume, not your share.", path=path),
        cause_of=("checkpoint-budget-exceeds-disk", "target-not-writable", "disk-nearly-full"),
    )  # fmt: skip


@check("target-not-writable")
def targets_can_be_written(storage: Storage) -> Iterator[Finding]:
    """Was a trial write refused for another reason than a quota?"""
    for index, probe in enumerate(storage.write_probes):
        if probe.errno in (ENOSPC, EROFS, EACCES):
            yield Finding(
                id="target-not-writable",
                level="fail",
                subject=probe.path,
                title=_not_writable(probe.path, probe.errno),
                evidence=(Evidence(fact=f"storage.write_probes[{index}].errno", value=str(probe.errno)),),
                advice=t("Let the run write to a folder that takes files: try  touch FOLDER/x && rm FOLDER/x"),
            )


def _not_writable(path: str, errno: int) -> Text:
    if errno == ENOSPC:
        return t("{path} cannot be written: no space left on device (errno 28)", path=path)
    if errno == EROFS:
        return t("{path} cannot be written: the file system is read-only (errno 30)", path=path)
    return t("{path} cannot be written: permission denied (errno 13)", path=path)


def checkpoint_bytes(workload: Workload) -> tuple[int | None, int | None]:
    """Return the size of one checkpoint as (surely, probably): weights in fp32, and with AdamW's two moments.

    A size that a profile computed counts as sure. None: nothing is known of the model.
    """
    if workload.checkpoint_bytes is not None:
        return workload.checkpoint_bytes, workload.checkpoint_bytes
    parameters = workload.model_parameters
    return (None, None) if parameters is None else (2 * parameters, 12 * parameters)


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
    if room < GB and surely is None:
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
        title=t("the run writes to {path}, which lies on {mount} with {free} GB free: no checkpoint fits", path=path, mount=mount.path, free=gb(room))
        if needed is None
        else t("{count} checkpoints of this run take {needed} GB, {mount} (where {path} lies) has {free} GB free", count=kept, needed=gb(needed), mount=mount.path, path=path, free=gb(room)),
        evidence=(*mount_evidence(storage, mount, "free_bytes"), *evidence(workload__output_dir=path, workload__model_parameters=workload.model_parameters, workload__checkpoint_bytes=workload.checkpoint_bytes)),
        advice=_room_advice(storage, mount, needed or 10 * GB),
        cause_of=("disk-nearly-full",),
    )  # fmt: skip


def _room_advice(storage: Storage, mount: Mount, needed: int) -> Text:
    other = roomier(storage, mount, needed)
    if other:
        return t("Write to {other} ({room} GB free), or delete old checkpoints under {mount} and keep fewer (save_total_limit=1, save_only_model=True).", other=other.path, room=gb(left(other) or 0), mount=mount.path)
    return t("Delete old checkpoints under {mount} and keep fewer (save_total_limit=1, save_only_model=True).", mount=mount.path)


# ---------------------------------------------------------------------------------------------------- what does not last
def _disk_of(platform: str, path: str) -> dict[str, object] | None:
    """Return the table's row of the disk that holds ``path`` on this platform: the longest path above it."""
    rows = [
        row
        for row in load("platforms")["disk"]
        if row["platform"] == platform and (row["path"] == "/" or path == row["path"] or path.startswith(row["path"] + "/"))
    ]
    return max(rows, key=lambda row: len(row["path"]), default=None)


def _title_of(platform: str) -> str:
    return next((row["title"] for row in load("platforms")["platform"] if row["name"] == platform), platform)


@check("output-on-ephemeral-disk")
def output_outlives_the_machine(
    storage: Storage, workload: Workload, platform: Reading[Platform], container: Reading[Container]
) -> Iterator[Finding]:
    """Does the run write where a stop or the end of the rental throws it away?"""
    path, name = workload.output_dir, platform.value.name if platform.value else ""
    mount = storage.mount(path) if path else None
    if not path or not path.startswith("/"):
        return
    if mount and mount.fstype in ("tmpfs", "ramfs"):
        yield _ephemeral(storage, path, mount, "warn", t("{path} lies in memory ({mount} is a {fstype}): it is gone with the machine's next stop", path=path, mount=mount.path, fstype=mount.fstype), None)
        return
    disk = _disk_of(name, path)
    # Another mount at or above the path than the disk's own (a volume mounted under /) is not the disk that is lost.
    if disk is None or (mount and mount.path != "/" and disk["path"] == "/"):
        return
    if disk.get("survives_stop") is False:
        survivor = _survivor(storage, name, path)
        room = left(survivor) if survivor else None
        title = t("{path} is on {platform}'s container disk, which is thrown away at every stop", path=path, platform=_title_of(name))
        if survivor and room is not None:
            title = t("{path} is on {platform}'s container disk, which is thrown away at every stop; {other} stays and has {room} GB free", path=path, platform=_title_of(name), other=survivor.path, room=gb(room))
        yield _ephemeral(storage, path, mount, "warn", title, survivor)
    elif disk.get("survives_release") is False:
        yield _ephemeral(storage, path, mount, "note", t("{path} stays when the machine is stopped, and is lost when it is released ({platform})", path=path, platform=_title_of(name)), _survivor(storage, name, path, release=True))


def _survivor(storage: Storage, platform: str, path: str, release: bool = False) -> Mount | None:
    """Return a mounted disk of this platform that outlives a stop (or the release)."""
    field = "survives_release" if release else "survives_stop"
    paths = [row["path"] for row in load("platforms")["disk"] if row["platform"] == platform and row.get(field) and not row.get("read_only") and row["path"] != "/"]
    return next((item for item in storage.mounts if item.path in paths and not item.read_only), None)


def _ephemeral(storage: Storage, path: str, mount: Mount | None, level: Level, title: Text, survivor: Mount | None) -> Finding:
    leaf = path.rstrip("/").rpartition("/")[2] or "output"
    return Finding(
        id="output-on-ephemeral-disk",
        level=level,
        subject=path,
        title=title,
        evidence=evidence(workload__output_dir=path) + (mount_evidence(storage, mount, "fstype") if mount else ()) + (mount_evidence(storage, survivor, "free_bytes") if survivor else ()),
        advice=t("Write to {target}, or copy checkpoints there as they come: rsync -a {path}/ {target}/", target=f"{survivor.path.rstrip('/')}/{leaf}", path=path)
        if survivor
        else t("Copy what you want to keep off the machine before it is stopped: rsync -a {path}/ ELSEWHERE:", path=path),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------- what is slow
MANY_FILES = 10_000
BUSY_PCT, IDLE_PCT = 80.0, 60.0
SLOW_BYTES_PER_S = 100 * MB
FAST_BYTES_PER_S = 400 * MB


def _starved(workload: Workload) -> bool | None:
    """Whether the GPU was seen waiting; None: nobody looked, or it was in between."""
    seen = workload.gpu_utilization_pct
    return None if seen is None or IDLE_PCT <= seen < BUSY_PCT else seen < IDLE_PCT


@check("data-on-network-mount", "data-on-slow-disk")
def data_lies_near(storage: Storage, workload: Workload, platform: Reading[Platform]) -> Iterator[Finding]:
    """Does the run read its data over a network or from a slow disk, and does the GPU wait for it?

    Judged by the mount's type and by what was measured, never by its name alone.
    """
    path = workload.data_path
    mount = storage.mount(path) if path else None
    if not path or mount is None or _starved(workload) is False:
        return
    speed = mount.read_bytes_per_s
    network = is_network(mount) or (_shared(platform, path) and mount.path != "/")
    if speed is not None and speed >= FAST_BYTES_PER_S and (workload.data_files or 0) < MANY_FILES:
        return
    many = (workload.data_files or 0) >= MANY_FILES
    slow = speed is not None and speed < SLOW_BYTES_PER_S
    if network:
        level: Level = "warn" if _starved(workload) or (workload.gpu_utilization_pct is None and (many or slow)) else "note"
        yield _data_finding(storage, workload, mount, path, "data-on-network-mount", level)
    elif slow or (mount.rotational and many):
        level = "warn" if workload.gpu_utilization_pct is None or _starved(workload) else "note"
        yield _data_finding(storage, workload, mount, path, "data-on-slow-disk", level)


def _shared(platform: Reading[Platform], path: str) -> bool:
    row = _disk_of(platform.value.name, path) if platform.value else None
    return bool(row and row.get("speed") == "slow")


def _data_finding(storage: Storage, workload: Workload, mount: Mount, path: str, kind: str, level: Level) -> Finding:
    speed = mount.read_bytes_per_s
    if kind == "data-on-slow-disk":
        title = t("the data ({path}) lies on {mount}, which reads {speed} MB/s", path=path, mount=mount.path, speed=round(speed / MB)) if speed is not None else t("the data ({path}) is {count} files on a rotating disk ({mount})", path=path, count=workload.data_files or 0, mount=mount.path)
    elif workload.data_files:
        title = t("the data ({path}, {count} files) is read over the network ({fstype} on {mount})", path=path, count=workload.data_files, fstype=mount.fstype, mount=mount.path)
    else:
        title = t("the data ({path}) is read over the network ({fstype} on {mount})", path=path, fstype=mount.fstype, mount=mount.path)
    return Finding(
        id=kind,
        level=level,
        subject=path,
        title=title,
        evidence=(*mount_evidence(storage, mount, "fstype", "read_bytes_per_s", "rotational"), *evidence(workload__data_path=path, workload__data_files=workload.data_files, workload__gpu_utilization_pct=workload.gpu_utilization_pct)),
        advice=_nearer(storage, mount, path, workload),
    )  # fmt: skip


def _nearer(storage: Storage, mount: Mount, path: str, workload: Workload) -> Text:
    wanted = int((workload.data_bytes or 0) * 1.1) or 10 * GB
    local = roomier(storage, mount, wanted, local_only=True)
    root = storage.mount("/")
    if local is None and root and root is not mount and not is_network(root) and (left(root) or 0) >= wanted + 10 * GB:
        local = root
    if local is None:
        return t("Pack it into few large files (tar, Parquet, Arrow) and read it with more workers; no local disk here has room for a copy.")
    folder = f"{local.path.rstrip('/')}/data"
    return t("Copy it to the local disk once ({room} GB free): mkdir -p {folder} && rsync -a {path}/ {folder}/ ; or pack it into few large files.", room=gb(left(local) or 0), folder=folder, path=path)
