"""Disks and where things lie on them. Each file system is asked in a thread of its own: a dead NFS server costs only itself."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from doctor.model import Mount, Place, Reading, Storage, Text, ok, t
from doctor.probes.bounded import names_in
from doctor.probes.gaps import Gaps
from doctor.probes.host_system import parse_passwd_homes
from doctor.probes.mountinfo import MountLine, mount_of, parse_mountinfo
from doctor.probes.places import Wanted, places
from doctor.tables.platforms import disks, platforms
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

T = TypeVar("T")

ANSWER_DEADLINE_S = 1.0
"""For all file systems together; one that has not answered by then is reported as such."""
_DATA_MOUNTS_LIMIT = 24

# File systems that hold no data of a person.
_KERNEL_FSTYPES = frozenset(
    [
        "proc",
        "sysfs",
        "devpts",
        "devtmpfs",
        "cgroup",
        "cgroup2",
        "mqueue",
        "debugfs",
        "tracefs",
        "securityfs",
        "pstore",
        "bpf",
        "configfs",
        "fusectl",
        "hugetlbfs",
        "autofs",
        "binfmt_misc",
        "rpc_pipefs",
        "nsfs",
        "efivarfs",
        "selinuxfs",
        "ramfs",
        "squashfs",
        "fuse.lxcfs",
        "fuse.gvfsd-fuse",
        "fuse.portal",
    ]
)
_SYSTEM_PATHS = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/snap",
    "/boot",
    "/etc",
    "/usr",
    "/lib",
    "/var/lib",
    "/opt/nvidia",
)

Statvfs = Callable[[str], os.statvfs_result]


def probe(
    context: Context, statvfs: Statvfs = os.statvfs, deadline_s: float = ANSWER_DEADLINE_S
) -> Reading[Storage]:
    """Read the mounts that matter and the places of caches and output. Nothing is written, nothing is walked."""
    gaps = Gaps(context)
    lines = gaps.parse("mounts", "/proc/self/mountinfo", parse_mountinfo)
    if lines is None:
        return Reading(status="failed", why=gaps.reasons["mounts"], source="/proc/self/mountinfo")
    wanted = _places(context)
    end = time.monotonic() + deadline_s
    looked = ask_all({item.name: _look(context, item) for item in wanted}, end - deadline_s / 2)
    real = {item.name: looked[item.name].path if item.name in looked else item.path for item in wanted}
    chosen = mounts_that_matter(lines, list(real.values()))
    sizes = ask_all({line.path: _size(context, line, statvfs) for line in chosen}, end)
    storage = Storage(
        mounts=tuple(_mount(context, line, sizes.get(line.path)) for line in chosen),
        places=tuple(_place(item, looked.get(item.name), real[item.name], lines) for item in wanted),
        unread=_silent_places(wanted, looked),
    )
    return ok(storage, "/proc/self/mountinfo, statvfs")


def _silent_places(wanted: tuple[Wanted, ...], looked: dict[str, Looked]) -> dict[str, Text]:
    silent = [item.path for item in wanted if item.name not in looked]
    paths = printable(", ".join(dict.fromkeys(silent)))
    return {"places": t("no answer from the file system of {paths}", paths=paths)} if silent else {}


# ---------------------------------------------------------------------------------------- asking with a deadline
def ask_all(questions: dict[str, Callable[[], T]], end: float) -> dict[str, T]:
    """Ask every question in a thread of its own and return the answers had by ``end`` (monotonic seconds)."""
    answers: dict[str, T] = {}
    threads = [
        threading.Thread(target=_ask, args=(answers, *item), daemon=True) for item in questions.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(answers)


def _ask(answers: dict[str, T], name: str, question: Callable[[], T]) -> None:
    answers[name] = question()


# ---------------------------------------------------------------------------------------- mounts
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
    error: str = ""


def _size(context: Context, line: MountLine, statvfs: Statvfs) -> Callable[[], Size]:
    def ask() -> Size:
        try:
            return size_of(statvfs(str(context.path(line.path))))
        except OSError as error:
            return Size(error=error.strerror or str(error))

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


def _mount(context: Context, line: MountLine, size: Size | None) -> Mount:
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
        read_only="ro" in line.options,
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


# ---------------------------------------------------------------------------------------- places
class Looked(msgspec.Struct, frozen=True):
    path: str
    """Where it really is, links followed."""
    exists: bool
    writable: bool


def _places(context: Context) -> tuple[Wanted, ...]:
    home, user = _home_and_user(context)
    return places(context.environ, home, str(context.cwd), user, _transformers_major(context))


def _home_and_user(context: Context) -> tuple[str, str]:
    gaps = Gaps(context)
    uid = os.getuid()
    name, folder = (gaps.parse("home", "/etc/passwd", parse_passwd_homes) or {}).get(uid, (f"uid_{uid}", "/"))
    user = next((value for key in ("LOGNAME", "USER") if (value := context.environ.get(key))), name)
    return context.environ.get("HOME") or folder, user


def _transformers_major(context: Context) -> int | None:
    for folder in context.target.site_packages:
        for name in names_in(folder):
            # transformers-4.44.2.dist-info
            if match := re.fullmatch(r"transformers-(\d+)[^-]*\.dist-info", name):
                return int(match[1])
    return None


def _look(context: Context, wanted: Wanted) -> Callable[[], Looked]:
    def ask() -> Looked:
        path = follow_links(context, wanted.path)
        there = os.path.lexists(context.path(path))
        return Looked(path, there, os.access(context.path(_nearest_existing(context, path)), os.W_OK))

    return ask


def follow_links(context: Context, path: str, depth: int = 20) -> str:
    """Return the real path below the context's root. A link loop or a dangling part leaves the rest as it is."""
    parts, real = [part for part in path.split("/") if part], ""
    while parts:
        part = parts.pop(0)
        try:
            link = os.readlink(context.path(f"{real}/{part}"))  # noqa: PTH115 - the link's text is the answer
        except OSError:
            real = real.rpartition("/")[0] if part == ".." else real if part == "." else f"{real}/{part}"
            continue
        if depth == 0:
            return "/".join([real, part, *parts])
        depth -= 1
        parts = [piece for piece in link.split("/") if piece] + parts
        real = "" if link.startswith("/") else real
    return real or "/"


def _nearest_existing(context: Context, path: str) -> str:
    while path != "/" and not os.path.lexists(context.path(path)):
        path = path.rpartition("/")[0] or "/"
    return path


def _place(wanted: Wanted, looked: Looked | None, real: str, lines: tuple[MountLine, ...]) -> Place:
    mount = mount_of(real, lines)
    return Place(
        name=wanted.name,
        path=printable(wanted.path),
        exists=looked.exists if looked else None,
        mount=printable(mount.path) if mount else None,
        set_by=wanted.set_by,
        writable=looked.writable if looked else None,
    )
