"""Inside a container or not, and what it is allowed: CPU quota, memory limit, kills for memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doctor.model import Container, Reading, ok, t
from doctor.probes import cgroup
from doctor.probes.gaps import Gaps, is_folder, is_there, reason_of
from doctor.probes.mountinfo import MountLine, mount_of, parse_mountinfo
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

_FIRST_NAMESPACES = {"pid": 4026531836, "uts": 4026531838, "ipc": 4026531839, "cgroup": 4026531835}
"""Inode numbers of the namespaces that the kernel starts with (include/linux/proc_ns.h, since Linux 3.8)."""


def probe(context: Context) -> Reading[Container]:
    """Read the container's markers and limits. What cannot be read stands in ``unread``."""
    gaps = Gaps(context)
    mounts = gaps.parse("cpu_quota_cores", "/proc/self/mountinfo", parse_mountinfo) or ()
    groups = gaps.parse("cpu_quota_cores", "/proc/self/cgroup", cgroup.parse_cgroup) or {}
    gaps.same("cpu_quota_cores", "memory_limit_bytes")
    spaces = namespaces(gaps)
    first_names = first_process_names(gaps)
    markers = find_markers(context, groups, first_names)
    inside = is_inside(markers, spaces, _root_fstype(mounts), _is_wsl(context))
    if inside is None:
        gaps.note("inside", t("neither a container's markers nor this process's namespaces could be read"))
    if inside and spaces.get("pid"):
        gaps.note("first_process_variables", t("process 1 is the host's, not this container's"))
        first_names = None
    values: dict[str, Any] = {
        "inside": inside,
        "kind": (markers[0] if markers and inside is not False else "slurm" if _in_slurm(groups) else ""),
        "host_pid_namespace": spaces.get("pid"),
        **_cpu(gaps, groups, mounts),
        **_memory(gaps, groups, mounts),
        "first_process_variables": first_names,
    }
    return ok(
        Container(**values, unread=_unread(gaps, values)), "/proc/self/cgroup, /sys/fs/cgroup, /proc/self/ns"
    )


def _unread(gaps: Gaps, values: Mapping[str, Any]) -> dict[str, Any]:
    """A limit that is known to be none has no reason to give."""
    known = {"cpu_quota_cores": "cpu_quota_unlimited", "memory_limit_bytes": "memory_limit_unlimited"}
    unread = gaps.unread(**values)
    return {field: why for field, why in unread.items() if not values.get(known.get(field, ""))}


# ---------------------------------------------------------------------------------------- what it is
def namespaces(gaps: Gaps) -> dict[str, bool]:
    """Return namespace -> whether this process is in the kernel's own; one that cannot be read is left out.

    ``readlink /proc/self/ns/pid`` says ``pid:[4026531836]`` for a process that shares the host's.
    """
    found: dict[str, bool] = {}
    for name, first in _FIRST_NAMESPACES.items():
        path = f"/proc/self/ns/{name}"
        try:
            link = os.readlink(gaps.context.path(path))  # noqa: PTH115 - the link's text is the answer
        except OSError as error:
            if name == "pid":
                why = t("{path} could not be read: {error}", path=path, error=reason_of(error))
                gaps.note("host_pid_namespace", why)
            continue
        match = re.fullmatch(rf"{name}:\[(\d+)\]", link)
        if match:
            found[name] = int(match[1]) == first
    return found


def find_markers(
    context: Context, groups: Mapping[str, str], first_names: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Return the kinds of container that left their mark, the most telling first."""
    environ = context.environ
    paths = " ".join(groups.values())
    marks = {
        "apptainer": "APPTAINER_CONTAINER" in environ
        or "SINGULARITY_CONTAINER" in environ
        or is_folder(context.path("/.singularity.d")),
        "kubernetes": "KUBERNETES_SERVICE_HOST" in {*environ, *(first_names or ())}
        or is_there(context.path("/var/run/secrets/kubernetes.io"))
        or "kubepods" in paths,
        "podman": is_there(context.path("/run/.containerenv")) or "libpod" in paths,
        "docker": is_there(context.path("/.dockerenv")) or re.search(r"/docker[-/]", paths) is not None,
        "lxc": environ.get("container") == "lxc" or "/lxc" in paths or is_there(context.path("/dev/lxc")),
    }
    declared = _declared_kind(context)
    return tuple(dict.fromkeys([*(kind for kind, seen in marks.items() if seen), *declared]))


def _declared_kind(context: Context) -> list[str]:
    """systemd and podman write the kind where every process can read it."""
    named = context.environ.get("container", "")
    if not named:
        try:
            named = context.read("/run/systemd/container", 64).strip()
        except OSError:
            return []
    return [named] if re.fullmatch(r"[a-z][a-z0-9-]{1,20}", named) else []


def is_inside(
    markers: tuple[str, ...], spaces: Mapping[str, bool], root_fstype: str, wsl: bool
) -> bool | None:
    """Decide whether this is a container.

    A marker alone can be left over (an image turned into a virtual machine keeps its /.dockerenv): where
    every namespace is the kernel's own it is not believed. Apptainer shares all of them by design.
    """
    own = [name for name, is_first in spaces.items() if not is_first]
    if markers:
        return bool(own) or "apptainer" in markers or "pid" not in spaces
    if not spaces:
        return None
    if wsl:
        return False
    return any(name in own for name in ("pid", "uts", "ipc")) or (
        "cgroup" in own and root_fstype == "overlay"
    )


def _is_wsl(context: Context) -> bool:
    try:
        return "microsoft" in context.read("/proc/sys/kernel/osrelease").lower()
    except OSError:
        return False


def _root_fstype(mounts: tuple[MountLine, ...]) -> str:
    root = mount_of("/", mounts)
    return root.fstype if root else ""


def _in_slurm(groups: Mapping[str, str]) -> bool:
    # 0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0
    return any("/slurm" in path for path in groups.values())


def first_process_names(gaps: Gaps) -> tuple[str, ...] | None:
    """Return the names (never the values) in /proc/1/environ."""
    text = gaps.text("first_process_variables", "/proc/1/environ")
    return None if text is None else parse_variable_names(text)


def parse_variable_names(text: str) -> tuple[str, ...]:
    """Return the sorted names of ``NAME=value`` entries that end in NUL; what has no name is left out."""
    names = (entry.partition("=")[0] for entry in text.split("\0") if "=" in entry)
    return tuple(sorted({printable(name) for name in names if name}))


# ---------------------------------------------------------------------------------------- what it is allowed
def _cpu(gaps: Gaps, groups: dict[str, str], mounts: tuple[MountLine, ...]) -> dict[str, Any]:
    controller = cgroup.find_controller(gaps.context, "cpu", groups, mounts)
    limit = cgroup.cpu_limit(gaps, controller, "cpu_quota_cores") if controller else None
    if controller is None:
        gaps.note("cpu_quota_cores", t("no control group that can be seen from here carries this limit"))
    unlimited = None if limit is None else limit.value is None
    return {"cpu_quota_cores": limit.value if limit else None, "cpu_quota_unlimited": unlimited}


def _memory(gaps: Gaps, groups: dict[str, str], mounts: tuple[MountLine, ...]) -> dict[str, Any]:
    controller = cgroup.find_controller(gaps.context, "memory", groups, mounts)
    if controller is None:
        gaps.note("memory_limit_bytes", t("no control group that can be seen from here carries this limit"))
        return {}
    limit = cgroup.memory_limit(gaps, controller, "memory_limit_bytes")
    folder = limit.folder if limit else controller.folders[0]
    return {
        "memory_limit_bytes": None if limit is None or limit.value is None else int(limit.value),
        "memory_limit_unlimited": None if limit is None else limit.value is None,
        "memory_current_bytes": cgroup.memory_use(gaps.context, controller, folder),
        "oom_kill_count": cgroup.oom_kills(gaps.context, controller, folder),
    }
