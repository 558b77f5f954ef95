"""Checks on where a run reads its data: over a network, from a slow disk, with the GPU waiting. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.lasting import disk_of
from doctor.checks.storage import GB, gb, is_network, left, mount_evidence, roomier
from doctor.model import (
    Finding,
    Host,
    Level,
    Mount,
    Platform,
    Reading,
    Storage,
    Text,
    Workload,
    t,
)

MB = 1 << 20
MANY_FILES = 10_000
BUSY_PCT, IDLE_PCT = 80.0, 60.0
SLOW_BYTES_PER_S = 100 * MB
STARVING_BYTES_PER_S = 250 * MB
"""A disk that reads no faster than this is to blame where the GPU was seen waiting."""
FAST_BYTES_PER_S = 400 * MB


def _starved(workload: Workload) -> bool | None:
    """Whether the GPU was seen waiting; None: nobody looked, or it was in between."""
    seen = workload.gpu_utilization_pct
    return None if seen is None or IDLE_PCT <= seen < BUSY_PCT else seen < IDLE_PCT


@check("data-on-network-mount", "data-on-slow-disk")
def data_lies_near(
    storage: Storage, workload: Workload, platform: Reading[Platform], host: Reading[Host]
) -> Iterator[Finding]:
    """Does the run read its data over a network or from a slow disk, and does the GPU wait for it?

    Judged by the mount's type and by what was measured, never by its name alone.
    """
    path = workload.data_path
    mount = storage.mount(path) if path else None
    if not path or mount is None or _starved(workload) is False:
        return
    speed = mount.read_bytes_per_s
    windows = _is_a_windows_drive(mount, host)
    network = (is_network(mount) and not windows) or (_shared(platform, path) and mount.path != "/")
    if speed is not None and speed >= FAST_BYTES_PER_S and (workload.data_files or 0) < MANY_FILES:
        return
    many = (workload.data_files or 0) >= MANY_FILES
    slow = speed is not None and speed < (
        SLOW_BYTES_PER_S if not _starved(workload) else STARVING_BYTES_PER_S
    )
    if network:
        level: Level = (
            "warn"
            if _starved(workload) or (workload.gpu_utilization_pct is None and (many or slow))
            else "note"
        )
        yield _data_finding(storage, workload, mount, path, "data-on-network-mount", level)
    elif (
        slow
        or ((mount.rotational or windows) and (many or _starved(workload)))
        or _is_foreign(mount, many, workload)
    ):
        level = "warn" if workload.gpu_utilization_pct is None or _starved(workload) else "note"
        yield _data_finding(storage, workload, mount, path, "data-on-slow-disk", level)


def _is_foreign(mount: Mount, many: bool, workload: Workload) -> bool:
    """Many files on a Windows file system, with the GPU seen waiting: each of them is slow to open from Linux."""
    return (
        mount.fstype in ("fuseblk", "ntfs", "ntfs3", "exfat", "vfat") and many and _starved(workload) is True
    )


def _is_a_windows_drive(mount: Mount, host: Reading[Host]) -> bool:
    """Under WSL /mnt/c is a drive of this very machine, reached through a slow translation (9p, drvfs)."""
    wsl = bool(host.value and host.value.wsl)
    return mount.fstype == "drvfs" or (wsl and mount.path.startswith("/mnt/") and mount.fstype in ("9p", "v9fs"))  # fmt: skip


def _shared(platform: Reading[Platform], path: str) -> bool:
    row = disk_of(platform.value.name, path) if platform.value else None
    return bool(row and row.get("speed") == "slow")


def _data_finding(
    storage: Storage, workload: Workload, mount: Mount, path: str, kind: str, level: Level
) -> Finding:
    speed = mount.read_bytes_per_s
    if kind == "data-on-slow-disk":
        title = (
            t(
                "the data ({path}) lies on {mount}, which reads {speed} MB/s",
                path=path,
                mount=mount.path,
                speed=round(speed / MB),
            )
            if speed is not None
            else t(
                "the data ({path}) lies on a Windows file system ({mount}), which Linux reads slowly, many small files above all",
                path=path,
                mount=mount.path,
            )
            if not mount.rotational
            else t(
                "the data ({path}) lies on a rotating disk ({mount})",
                path=path,
                mount=mount.path,
            )
        )
    elif workload.data_files:
        title = t(
            "the data ({path}, {count} {count:file|files}) is read over the network ({fstype} on {mount})",
            path=path,
            count=workload.data_files,
            fstype=mount.fstype,
            mount=mount.path,
        )
    else:
        title = t(
            "the data ({path}) is read over the network ({fstype} on {mount})",
            path=path,
            fstype=mount.fstype,
            mount=mount.path,
        )
    return Finding(
        id=kind,
        level=level,
        subject=path,
        title=title,
        evidence=(
            *mount_evidence(storage, mount, "fstype", "read_bytes_per_s", "rotational"),
            *evidence(
                workload__data_path=path,
                workload__data_files=workload.data_files,
                workload__gpu_utilization_pct=workload.gpu_utilization_pct,
            ),
        ),
        advice=_nearer(storage, mount, path, workload),
    )


def _nearer(storage: Storage, mount: Mount, path: str, workload: Workload) -> Text:
    wanted = int((workload.data_bytes or 0) * 1.1) or 10 * GB
    local = roomier(storage, mount, wanted, local_only=True)
    root = storage.mount("/")
    if (
        local is None
        and root
        and root is not mount
        and not is_network(root)
        and (left(root) or 0) >= wanted + 10 * GB
    ):
        local = root
    if local is None:
        return t(
            "Pack it into few large files (tar, Parquet, Arrow) and read it with more workers; no local disk here has room for a copy."
        )
    folder = f"{local.path.rstrip('/')}/data"
    return t(
        "Copy it to the local disk once ({room} GB free): mkdir -p {folder} && rsync -a {path}/ {folder}/ ; or pack it into few large files.",
        room=gb(left(local) or 0),
        folder=folder,
        path=path,
    )
