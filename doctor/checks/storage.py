"""Checks on disks: which are full, out of inodes, or too small for the caches that land on them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check
from doctor.model import Environment, Evidence, Finding, Mount, Packages, Place, Reading, Storage, Workload, t

GB = 1 << 30
NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "beegfs_nodev", "afs",
    "fuse.mfs", "fuse.moosefs", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.sshfs", "fuse.glusterfs",
    "fuse.ceph-fuse", "fuse.drive", "fuse.goofys", "fuse.alluxio-fuse", "fuse.seaweedfs", "virtiofs", "weka", "wekafs", "pvfs2",
)  # fmt: skip
_LOCAL_FUSE = ("fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.bindfs", "fuse.unionfs", "fuse.lxcfs", "fuse.ntfs-3g", "fuse.encfs", "fuse.gocryptfs", "fuse.squashfuse")  # fmt: skip
_NO_DISK = ("tmpfs", "ramfs", "devtmpfs", "proc", "sysfs", "cgroup", "cgroup2", "squashfs", "iso9660", "devpts", "mqueue", "efivarfs", "autofs")  # fmt: skip
_NOT_FOR_USERS = ("/boot", "/dev", "/proc", "/sys", "/run", "/etc", "/usr", "/lib", "/snap", "/var/lib")


def is_network(mount: Mount) -> bool:
    """Whether its file system type is a network one (``findmnt -no FSTYPE PATH``)."""
    return mount.fstype in NETWORK or (mount.fstype.startswith("fuse") and mount.fstype not in _LOCAL_FUSE)


def gb(size: float) -> str:
    """``3221225472`` -> ``3 GB``; below ten one decimal."""
    value = size / GB
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def mount_path(storage: Storage, mount: Mount, field: str) -> str:
    return f"storage.mounts[{storage.mounts.index(mount)}].{field}"


def mount_evidence(storage: Storage, mount: Mount, *fields: str) -> tuple[Evidence, ...]:
    rows = ((field, getattr(mount, field)) for field in fields)
    return tuple(
        Evidence(fact=mount_path(storage, mount, field), value=f"{mount.path} {value}")
        for field, value in rows
        if value is not None
    )


def left(mount: Mount) -> int | None:
    """Return the bytes that can still be written: the smaller of free space and what a quota leaves; None: unknown."""
    known = [mount.free_bytes] if mount.free_bytes is not None and not mount.error else []
    if mount.quota_bytes is not None and mount.quota_used_bytes is not None:
        known.append(max(0, mount.quota_bytes - mount.quota_used_bytes))
    return min(known, default=None)


def roomier(storage: Storage, than: Mount, wanted_bytes: int, local_only: bool = False) -> Mount | None:
    """Return the disk with most room that could hold ``wanted_bytes`` more, local ones first; None: there is none."""
    fits = [
        item
        for item in storage.mounts
        if item.path not in (than.path, "/") and not item.path.startswith(_NOT_FOR_USERS) and item.fstype not in _NO_DISK
        and not item.read_only and (left(item) or 0) >= wanted_bytes and not (local_only and is_network(item))
        and not (item.source and item.source == than.source)
    ]  # fmt: skip
    return max(fits, key=lambda item: (not is_network(item), left(item) or 0), default=None)


_USES_HUB = ("transformers", "datasets", "huggingface-hub", "diffusers", "sentence-transformers", "peft", "trl", "accelerate", "evaluate")  # fmt: skip


def _hub_place(storage: Storage) -> tuple[Place | None, str]:
    """Return where downloads land, and the variable that moves it: HF_HOME, unless the hub cache was set on its own."""
    hub = storage.place("hf_hub_cache")
    if hub and hub.set_by in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        return hub, "HF_HUB_CACHE"
    return storage.place("hf_home") or hub, "HF_HOME"


@check("hf-cache-on-small-disk")
def hub_cache_has_room(
    storage: Storage, packages: Packages, environment: Reading[Environment]
) -> Iterator[Finding]:
    """Does the Hugging Face cache lie on a small disk while a larger one is there?"""
    place, variable = _hub_place(storage)
    mount = storage.mount(place.path) if place else None
    room = left(mount) if mount else None
    if place is None or mount is None or room is None or not any(packages.get(name) for name in _USES_HUB):
        return
    share = min((size for size in (mount.size_bytes, mount.quota_bytes) if size is not None), default=None)
    small = room < 15 * GB and (share is None or share <= 100 * GB)
    other = roomier(storage, mount, max(20 * GB, 3 * room))
    if not (small and other):
        return
    target = f"{other.path.rstrip('/')}/hf" + ("/hub" if variable == "HF_HUB_CACHE" else "")
    yield Finding(
        id="hf-cache-on-small-disk",
        level="fail" if room < 5 * GB else "warn",
        subject=place.path,
        title=t(
            "the Hugging Face cache ({cache}) lies on {mount} with {free} GB free, while {other} has {room} GB",
            cache=place.path,
            mount=mount.path,
            free=gb(room),
            other=other.path,
            room=gb(left(other) or 0),
        ),
        evidence=(
            Evidence(
                fact=f"storage.places[{storage.places.index(place)}].path",
                value=f"{place.path} ({place.set_by or 'default'})",
            ),
            *mount_evidence(storage, mount, "free_bytes", "quota_bytes", "quota_used_bytes"),
            *mount_evidence(storage, other, "free_bytes"),
        ),
        advice=t(
            "Before Python starts: export {variable}={target} . What is there already: mkdir -p {parent} && mv {cache} {target}",
            variable=variable,
            target=target,
            parent=target.rpartition("/")[0],
            cache=place.path,
        ),
        cause_of=("disk-nearly-full",),
    )


@check("xet-cache-on-small-disk")
def xet_cache_follows_the_hub_cache(
    storage: Storage, packages: Packages, environment: Environment
) -> Iterator[Finding]:
    """Was only the hub cache moved, so that Xet's data still lands on a small disk?"""
    moved = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE")
    home = storage.place("hf_home")
    mount = storage.mount(home.path) if home else None
    room = left(mount) if mount else None
    if (
        not moved
        or environment.get("HF_HOME")
        or environment.get("HF_XET_CACHE")
        or not packages.get("hf-xet")
    ):
        return
    if home and mount and room is not None and room < 16 * GB and storage.mount(moved) is not mount:
        yield Finding(
            id="xet-cache-on-small-disk",
            level="note",
            subject=home.path,
            title=t(
                "only HF_HUB_CACHE was moved: Xet's data goes to {path}, where {free} GB are free",
                path=home.path,
                free=gb(room),
            ),
            evidence=mount_evidence(storage, mount, "free_bytes"),
            advice=t("export HF_XET_CACHE={path}", path=f"{moved.rstrip('/').rpartition('/')[0]}/xet"),
        )


def _used(storage: Storage, workload: Workload | None) -> dict[str, Mount]:
    """Return the mounts that this session writes to, by path: of caches, home, temporary files, and the run's output."""
    paths = [place.path for place in storage.places if place.name != "torch_home"]
    paths += [workload.output_dir] if workload and workload.output_dir else []
    found = [storage.mount(path) for path in (*paths, "/")]
    return {
        item.path: item
        for item in found
        if item and not item.read_only and item.fstype not in ("squashfs", "iso9660")
    }


@check("disk-nearly-full")
def disks_have_room(storage: Storage, workload: Reading[Workload]) -> Iterator[Finding]:
    """Is a disk that this session writes to nearly full?"""
    for mount in _used(storage, workload.value).values():
        room = mount.free_bytes
        if room is None or mount.error or not mount.size_bytes or mount.size_bytes < GB:
            continue
        if room >= max(GB // 2, min(2 * GB, mount.size_bytes // 20)) or mount.fstype in ("tmpfs", "ramfs"):
            continue
        yield Finding(
            id="disk-nearly-full",
            level="fail" if room < 100 << 20 else "warn",
            subject=mount.path,
            title=t(
                "{mount} has {free} MB left of {size} GB",
                mount=mount.path,
                free=room >> 20,
                size=gb(mount.size_bytes),
            ),
            evidence=mount_evidence(storage, mount, "free_bytes"),
            advice=t(
                "See what fills it: du -xh -d1 {mount} | sort -h | tail. Caches can go: pip cache purge; uv cache clean; conda clean -a.",
                mount=mount.path,
            ),
        )


@check("inode-exhausted")
def disks_have_inodes(storage: Storage, workload: Reading[Workload]) -> Iterator[Finding]:
    """Is a disk out of inodes, so that no file can be made although bytes are free?"""
    run = workload.value
    watched = _used(storage, run)
    target = storage.mount(run.data_path) if run and run.data_path else None
    if target and not target.read_only:
        watched[target.path] = target
    watched |= {item.path: item for item in storage.mounts if item.inodes_free == 0 and not item.read_only}
    for mount in watched.values():
        spare, total = mount.inodes_free, mount.inodes_total
        counts_none = mount.fstype in ("btrfs", "zfs", "9p", "vfat") or mount.fstype.startswith("fuse")
        if spare is None or total == 0 or (total is None and counts_none):
            continue
        refused = any(
            probe.errno == 28 and storage.mount(probe.path) is mount for probe in storage.write_probes
        )
        few = spare < 1000 or (total is not None and spare < 10_000 and spare * 200 < total)
        if spare and not few:
            continue
        yield Finding(
            id="inode-exhausted",
            level="fail" if spare == 0 or (refused and few) else "warn",
            subject=mount.path,
            title=t(
                "{mount} has {spare} inodes left: without one no file can be made (No space left on device), however many bytes are free",
                mount=mount.path,
                spare=spare,
            ),
            evidence=mount_evidence(storage, mount, "inodes_free", "inodes_total"),
            advice=t(
                "Pack or delete folders with many small files: du --inodes -xd1 {mount} | sort -n | tail. Keep data sets as archives, Parquet or Arrow.",
                mount=mount.path,
            ),
            cause_of=("disk-nearly-full", "checkpoint-budget-exceeds-disk", "target-not-writable"),
        )
