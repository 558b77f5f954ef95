"""The limits that control groups set on this process (v1, v2, both mixed): the smallest of all levels counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from doctor.model import t
from doctor.probes.gaps import Gaps, is_folder, is_there, reason_of
from doctor.probes.mountinfo import MountLine

if TYPE_CHECKING:
    from doctor.probes import Context

_V1_UNLIMITED = 1 << 60
"""v1 writes "no limit" as the largest multiple of a page: anything this large is none."""


class Controller(msgspec.Struct, frozen=True):
    """Where one controller's files are: our group's folder and those above that can be seen, nearest first."""

    version: int
    folders: tuple[str, ...]
    sees_real_root: bool
    """The topmost folder is the kernel's own root group (not just the root of this container's view)."""


class Limit(msgspec.Struct, frozen=True):
    """A limit and the folder that sets it. ``value`` None: no limit at any level that can be seen."""

    value: float | None
    folder: str


def parse_cgroup(text: str) -> dict[str, str]:
    """Return controller -> path of /proc/PID/cgroup; the v2 hierarchy's key is the empty string."""
    # 4:memory:/docker/0123   or   0::/user.slice/user-1000.slice
    found: dict[str, str] = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number.isdigit() and path.startswith("/"):
            found.update(dict.fromkeys(names.split(","), path) if number != "0" else {"": path})
    return found


def find_controller(
    context: Context, name: str, groups: dict[str, str], mounts: tuple[MountLine, ...]
) -> Controller | None:
    """Return where ``cpu`` or ``memory`` is set; None where no hierarchy that carries it is mounted."""
    if name in groups:
        version, path = 1, groups[name]
        wanted = [line for line in mounts if line.fstype == "cgroup" and name in line.super_options]
    else:
        version, path = 2, groups.get("", "/")
        wanted = [line for line in mounts if line.fstype == "cgroup2"]
    if not wanted or (version == 2 and "" not in groups):
        return None
    folders = tuple(_existing(context, folders_above(wanted[-1].path, wanted[-1].root, path)))
    if not folders:
        return None
    marker = "release_agent" if version == 1 else "cgroup.events"
    has_marker = is_there(context.path(f"{folders[-1]}/{marker}"))
    return Controller(version, folders, has_marker if version == 1 else not has_marker)


def folders_above(mount_point: str, mount_root: str, path: str) -> list[str]:
    """Return our group's folder and every one above it up to the mount point.

    ``mount_root`` is what of the hierarchy the mount shows (field 4 of mountinfo). A path outside it
    (another cgroup namespace) leaves only the mount point, which is then the nearest group that can be seen.
    """
    inner = path if mount_root == "/" else path.removeprefix(mount_root)
    foreign = mount_root != "/" and path != mount_root and not path.startswith(mount_root + "/")
    parts = [] if foreign or ".." in inner.split("/") else [part for part in inner.split("/") if part]
    base = mount_point.rstrip("/")
    return ["/".join([base, *parts[:count]]) for count in range(len(parts), -1, -1)]


def _existing(context: Context, folders: list[str]) -> Iterator[str]:
    return (folder for folder in folders if is_folder(context.path(folder)))


def cpu_limit(gaps: Gaps, controller: Controller, field: str) -> Limit | None:
    """Return the smallest CPU quota in cores. None, with the reason noted, where it cannot be known."""
    context = gaps.context
    if controller.version == 2:
        return _smallest(
            gaps, controller, field, lambda folder: parse_cpu_max(context.read(f"{folder}/cpu.max"))
        )
    return _smallest(gaps, controller, field, lambda folder: _v1_cores(context, folder))


def _v1_cores(context: Context, folder: str) -> float | None:
    quota = int(context.read(f"{folder}/cpu.cfs_quota_us"))
    return None if quota <= 0 else quota / int(context.read(f"{folder}/cpu.cfs_period_us"))


def parse_cpu_max(text: str) -> float | None:
    """Return cores; None for ``max``. Raises ValueError for anything else."""
    # 200000 100000
    quota, _, period = text.strip().partition(" ")
    return None if quota == "max" else int(quota) / int(period or 100_000)


def memory_limit(gaps: Gaps, controller: Controller, field: str) -> Limit | None:
    """Return the smallest memory limit in bytes. None, with the reason noted, where it cannot be known."""
    context = gaps.context
    file = "memory.max" if controller.version == 2 else "memory.limit_in_bytes"
    limit = _smallest(
        gaps, controller, field, lambda folder: parse_memory_max(context.read(f"{folder}/{file}"))
    )
    above = None if controller.version == 2 else _hierarchical_limit(context, controller.folders[0])
    if above is not None and (limit is None or limit.value is None or above < limit.value):
        return Limit(above, controller.folders[0])
    return limit


def _hierarchical_limit(context: Context, folder: str) -> int | None:
    """v1 says in memory.stat what the groups above allow, also those that the container cannot see."""
    try:
        stat = context.read(f"{folder}/memory.stat")
    except OSError:
        return None
    match = re.search(r"^hierarchical_memory_limit (\d+)$", stat, re.MULTILINE)
    return parse_memory_max(match[1]) if match else None


def parse_memory_max(text: str) -> int | None:
    """Return bytes; None for ``max`` and for v1's "no limit". Raises ValueError for anything else."""
    if text.strip() == "max":
        return None
    return number if (number := int(text)) < _V1_UNLIMITED else None


def _smallest(
    gaps: Gaps, controller: Controller, field: str, read: Callable[[str], float | None]
) -> Limit | None:
    """Read every level; one without the file sets no limit, one that cannot be read may."""
    found: list[Limit] = []
    trouble = None
    for folder in controller.folders:
        try:
            found.append(Limit(read(folder), folder))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, ZeroDivisionError) as error:
            words = reason_of(error) if isinstance(error, OSError) else str(error)
            trouble = t("{path} could not be read: {error}", path=folder, error=words)
    limits = [limit for limit in found if limit.value is not None]
    if limits:
        return min(limits, key=lambda limit: limit.value or 0.0)
    if trouble is None and (found or controller.sees_real_root):
        return Limit(None, controller.folders[0])
    gaps.note(field, trouble or t("no control group that can be seen from here carries this limit"))
    return None


def memory_use(context: Context, controller: Controller, folder: str) -> int | None:
    """Return the bytes charged to the group at ``folder``, page cache included."""
    name = "memory.current" if controller.version == 2 else "memory.usage_in_bytes"
    try:
        return int(context.read(f"{folder}/{name}"))
    except (OSError, ValueError):
        return None


def oom_kills(context: Context, controller: Controller, folder: str) -> int | None:
    """Return how many processes of the group (and of those below it) the kernel killed for memory."""
    name = "memory.events" if controller.version == 2 else "memory.oom_control"
    try:
        match = re.search(r"^oom_kill (\d+)$", context.read(f"{folder}/{name}"), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None
