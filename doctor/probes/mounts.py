"""The mounts that matter, with what statvfs and the kernel say of each."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from doctor.model import Mount
from doctor.probes.mountinfo import MountLine, mount_of
from doctor.probes.quotas import Ask, Quota, quota_on
from doctor.tables.platforms import disks, platforms
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

_DATA_MOUNTS_LIMIT = 24

# File systems that hold no data of a person.
_KERNEL_FSTYPES = frozenset({
    "proc", "sysfs", "devpts", "devtmpfs", "cgroup", "cgroup2", "mqueue", "debugfs", "tracefs",
    "securityfs", "pstore", "bpf", "configfs", "fusectl", "hugetlbfs", "autofs", "binfmt_misc",
    "rpc_pipefs", "nsfs", "efivarfs", "selinuxfs", "ramfs", "squashfs", "fuse.lxcfs", "fuse.gvfsd-fuse",
    "fuse.portal",
})  # fmt: skip
_SYSTEM_PATHS = (
    "/proc", "/sys", "/dev", "/run", "/snap", "/boot", "/etc", "/usr", "/lib", "/var/lib", "/opt/nvidia",
)  # fmt: skip

Statvfs = Callable[[str], os.statvfs_result]


def mounts_that_matter(lines: tuple[MountLine, ...], paths: list[str]) -> list[MountLine]:
    """Return the mounts that hold ``paths``, those of known roles, and data disks; not the hundreds of a container host."""
    fixed = ["/", "/dev/shm", "/tmp"]
    for row in platforms():
        fixed += [disk.path for disk in disks(row.name)]
    holders = [mount_of(path, lines) for path in ["/", "/dev/shm", "/tmp", *paths]]
    chosen = {line.path: line for line in holders if line is not None}
    chosen.update({line.path: line for line in lines if line.path in fixed})
    data = [line for line in lines if _is_data(line) and line.path not in chosen]
    chosen.update({line.path: line for line in data[:_DATA_MOUNTS_LIMIT]})
    return sorted(chosen.values(), key=lambda line: line.path)


def _is_data(line: MountLine) -> bool:
    if line.fstype in _KERNEL_FSTYPES or line.fstype in ("tmpfs", "overlay"):
        return False
    return not any(line.path == path or line.path.startswith(path + "/") for path in _SYSTEM_PATHS)


class Size(msgspec.Struct, frozen=True):
    """What statvfs said, or why it said nothing."""

    size_bytes: int | None = None
    free_bytes: int | None = None
    inodes_total: int | None = None
    inodes_free: int | None = None
    quota: Quota | None = None
    error: str = ""


def ask_size(
    context: Context, line: MountLine, statvfs: Statvfs, ask_quota: Ask | None = None
) -> Callable[[], Size]:
    """Return the question; ``ask_quota`` stands in for the kernel's answer to quotactl."""

    def ask() -> Size:
        point = str(context.path(line.path))
        try:
            size = size_of(statvfs(point))
        except OSError as error:
            return Size(error=error.strerror or str(error))
        uid = os.getuid()
        quota = quota_on(line, point, uid, os.getgid(), ask_quota) if uid else None  # root has none
        return msgspec.structs.replace(size, quota=quota) if quota else size

    return ask


def size_of(answer: os.statvfs_result) -> Size:
    """Return what an ordinary user may still write; inodes only where the file system counts them (``df -i``)."""
    counted = answer.f_files > 0
    return Size(
        size_bytes=answer.f_blocks * answer.f_frsize,
        free_bytes=answer.f_bavail * answer.f_frsize,
        inodes_total=answer.f_files if counted else None,
        inodes_free=answer.f_favail if counted else None,
    )


def mount_record(context: Context, line: MountLine, size: Size | None) -> Mount:
    size = size or Size(error="no answer")
    return Mount(
        path=printable(line.path),
        fstype=printable(line.fstype),
        source=printable(line.source),
        size_bytes=size.size_bytes,
        free_bytes=size.free_bytes,
        inodes_total=size.inodes_total,
        inodes_free=size.inodes_free,
        rotational=is_rotational(context, line),
        quota_bytes=size.quota.limit_bytes if size.quota else None,
        quota_used_bytes=size.quota.used_bytes if size.quota else None,
        # the second says ro where the kernel itself took the disk back after an error
        read_only="ro" in line.options or "ro" in line.super_options,
        error=size.error,
    )


def is_rotational(context: Context, line: MountLine) -> bool | None:
    """Return what the kernel says of the disk; a virtual disk's "rotational" is only the hypervisor's default."""
    for folder in (f"/sys/dev/block/{line.device}", f"/sys/dev/block/{line.device}/.."):
        try:
            value = context.read(f"{folder}/queue/rotational", 16).strip()
        except OSError:
            continue
        virtual = line.source.startswith(("/dev/vd", "/dev/xvd", "/dev/mapper/", "/dev/dm-"))
        return False if value == "0" else None if virtual else True
    return None
