"""Checks on disks that do not last: what a stop or the end of the rental throws away. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.storage import gb, left, mount_evidence
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
    t,
)
from doctor.tables import load


def disk_of(platform: str, path: str) -> dict[str, object] | None:
    """Return the table's row of the disk that holds ``path`` on this platform: the longest path above it."""
    rows = [
        row
        for row in load("platforms")["disk"]
        if row["platform"] == platform
        and (row["path"] == "/" or path == row["path"] or path.startswith(row["path"] + "/"))
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
        yield _ephemeral(
            storage,
            path,
            mount,
            "warn",
            t(
                "{path} lies in memory ({mount} is a {fstype}): it is gone with the machine's next stop",
                path=path,
                mount=mount.path,
                fstype=mount.fstype,
            ),
            None,
        )
        return
    disk = disk_of(name, path)
    # Another mount at or above the path than the disk's own (a volume mounted under /) is not the disk that is lost.
    if disk is None or (mount and mount.path != "/" and disk["path"] == "/"):
        return
    if disk.get("survives_stop") is False:
        survivor = _survivor(storage, name, path)
        room = left(survivor) if survivor else None
        title = t(
            "{path} is on {platform}'s container disk, which is thrown away at every stop",
            path=path,
            platform=_title_of(name),
        )
        if survivor and room is not None:
            title = t(
                "{path} is on {platform}'s container disk, which is thrown away at every stop; {other} stays and has {room} GB free",
                path=path,
                platform=_title_of(name),
                other=survivor.path,
                room=gb(room),
            )
        yield _ephemeral(storage, path, mount, "warn", title, survivor)
    elif disk.get("survives_release") is False:
        yield _ephemeral(
            storage,
            path,
            mount,
            "note",
            _lost_on_release(path, name),
            _survivor(storage, name, path, release=True),
        )


def _lost_on_release(path: str, platform: str) -> Text:
    days = next(
        (row["days"] for row in load("platforms")["hint"] if row["platform"] == platform and row.get("days")),
        None,
    )
    if days is None:
        return t(
            "{path} stays when the machine is stopped, and is lost when it is released ({platform})",
            path=path,
            platform=_title_of(platform),
        )
    return t(
        "{path} stays when the machine is stopped, and is lost when it is released, which {platform} does after {days} days stopped",
        path=path,
        platform=_title_of(platform),
        days=days,
    )


def _survivor(storage: Storage, platform: str, path: str, release: bool = False) -> Mount | None:
    """Return a mounted disk of this platform that outlives a stop (or the release)."""
    field = "survives_release" if release else "survives_stop"
    paths = [
        row["path"]
        for row in load("platforms")["disk"]
        if row["platform"] == platform and row.get(field) and not row.get("read_only") and row["path"] != "/"
    ]
    return next((item for item in storage.mounts if item.path in paths and not item.read_only), None)


def _ephemeral(
    storage: Storage, path: str, mount: Mount | None, level: Level, title: Text, survivor: Mount | None
) -> Finding:
    leaf = path.rstrip("/").rpartition("/")[2] or "output"
    return Finding(
        id="output-on-ephemeral-disk",
        level=level,
        subject=path,
        title=title,
        evidence=evidence(workload__output_dir=path)
        + (mount_evidence(storage, mount, "fstype") if mount else ())
        + (mount_evidence(storage, survivor, "free_bytes") if survivor else ()),
        advice=t(
            "Write to {target}, or copy checkpoints there as they come: rsync -a {path}/ {target}/",
            target=f"{survivor.path.rstrip('/')}/{leaf}",
            path=path,
        )
        if survivor
        else t(
            "Copy what you want to keep off the machine before it is stopped: rsync -a {path}/ ELSEWHERE:",
            path=path,
        ),
    )


@check("work-on-ephemeral-disk")
def work_outlives_a_stop(
    storage: Storage, platform: Platform, workload: Reading[Workload]
) -> Iterator[Finding]:
    """Does the working directory lie on a disk that this platform empties at every stop?"""
    place = storage.place("cwd")
    if place is None or (workload.value and workload.value.output_dir):
        return
    disk, mount = disk_of(platform.name, place.path), storage.mount(place.path)
    if disk is None or disk.get("survives_stop") is not False or (mount and mount.path != disk["path"]):
        return
    other = _survivor(storage, platform.name, place.path)
    yield Finding(
        id="work-on-ephemeral-disk",
        level="note",
        subject=place.path,
        title=t(
            "the working directory {path} is thrown away when this machine is stopped ({platform}); {other} stays",
            path=place.path,
            platform=_title_of(platform.name),
            other=other.path,
        )
        if other
        else t(
            "the working directory {path} is thrown away when this machine is stopped ({platform})",
            path=place.path,
            platform=_title_of(platform.name),
        ),
        evidence=(
            *evidence(platform__name=platform.name),
            Evidence(fact=f"storage.places[{storage.places.index(place)}].path", value=place.path),
        ),
        advice=t("Work and save below {other}.", other=other.path)
        if other
        else t("Push code and copy results elsewhere before it is stopped."),
    )
