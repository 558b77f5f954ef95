"""Where a case was rented and what it is mounted on; caches lie where their libraries put them."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doctor.model import Mount, Place, Platform, Reading, Storage, WriteProbe, ok
from doctor.tables.platforms import recognise

if TYPE_CHECKING:
    from tests.cases.adapter import Seen

MB, GB = 1 << 20, 1 << 30


def platform(seen: Seen) -> Reading[Platform]:
    """Return the platform that variables, mounts and files show; *skipped* when they show none."""
    variables = seen.get("env") or {}
    present = {*seen.get("mounts", {}), *seen.get("files", {})}
    found = recognise(variables, present.__contains__)
    if found is None:
        return Reading(status="skipped")
    row, evidence = found
    rented = str(variables.get(row.gpu_count_variable, ""))
    section = Platform(
        name=row.name,
        evidence=evidence,
        gpus_rented=int(rented) if rented.isdigit() else None,
        no_gpu_mode=True if row.name == "autodl" and _started_without_a_card(seen) else None,
    )
    return ok(section, "case")


def _started_without_a_card(seen: Seen) -> bool:
    """No card, and a memory limit that no instance with one has."""
    limit = str(seen.get("files", {}).get("/sys/fs/cgroup/memory.max", ""))
    return seen.get("gpu_count") == 0 and limit.isdigit() and int(limit) <= 4 * GB


def storage(seen: Seen) -> Reading[Storage]:
    """Return mounts, the caches' places and write probes; *skipped* when the case names none."""
    mounts = tuple(_mount(path, row) for path, row in seen.take("mounts", {}).items())
    probe = seen.take("write_probe")
    if not mounts and not probe:
        return Reading(status="skipped")
    bare = Storage(mounts=mounts)
    rows = probe if isinstance(probe, list) else [probe] if probe else []
    probes = tuple(
        WriteProbe(path=row["path"], size_bytes=int(row.get("mb", 1) * MB), errno=_errno(row.get("errno")))
        for row in rows
    )
    return ok(
        Storage(mounts=mounts, places=_places(seen.get("env") or {}, bare), write_probes=probes), "case"
    )


def _errno(value: int | str | None) -> int:
    """``122`` | ``"EDQUOT"`` -> 122; 0: the write went well."""
    number = getattr(errno, value, 0) if isinstance(value, str) else value
    return number or 0


def _mount(path: str, row: Mapping[str, Any]) -> Mount:
    speed = row.get("read_mb_s")
    return Mount(
        path=path,
        fstype=row.get("fstype", ""),
        source=row.get("source", ""),
        size_bytes=_bytes(row, "size"),
        free_bytes=_bytes(row, "free"),
        inodes_total=row.get("inodes_total"),
        inodes_free=row.get("inodes_free"),
        quota_bytes=_bytes(row, "quota"),
        quota_used_bytes=_bytes(row, "used"),
        read_bytes_per_s=None if speed is None else float(speed * MB),
        rotational=row.get("rotational"),
        read_only=row.get("read_only"),
        error=row.get("error", ""),
    )


def _bytes(row: Mapping[str, Any], what: str) -> int | None:
    if f"{what}_mb" in row:
        return int(row[f"{what}_mb"] * MB)
    return int(row[f"{what}_gb"] * GB) if f"{what}_gb" in row else None


def _places(environment: Mapping[str, str], storage: Storage) -> tuple[Place, ...]:
    home = environment.get("HOME", "/root")
    cache = environment.get("XDG_CACHE_HOME", f"{home}/.cache")
    wanted = (
        ("hf_home", "HF_HOME", f"{cache}/huggingface"),
        ("torch_home", "TORCH_HOME", f"{cache}/torch"),
        ("tmp", "TMPDIR", "/tmp"),
        ("home", "HOME", home),
    )
    found = []
    for name, variable, default in wanted:
        path = environment.get(variable, default)
        mount = storage.mount(path)
        if mount:
            set_by = variable if variable in environment else ""
            found.append(Place(name=name, path=path, mount=mount.path, set_by=set_by))
    return tuple(found)
