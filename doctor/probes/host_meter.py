"""What a run takes of its machine: CPU and memory of its processes, memory of the container, room on its disk."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doctor.probes.process_tree import TreeMeter
from runner.text import Text, t

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60
"""cgroup v1 writes "no limit" as a number near 2**63."""


@dataclass(frozen=True)
class Memory:
    used_bytes: int
    limit_bytes: int
    scope: str
    """``container``: counted and limited by the cgroup. ``machine``: no limit is set, the machine's own."""


def cgroup_memory(root: Path = CGROUP) -> Memory | None:
    """Return the container's memory without page cache that can be dropped at once; None: no limit is set."""
    for folder, current, limit, inactive in (
        (root, "memory.current", "memory.max", "inactive_file"),
        (root / "memory", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"),
    ):
        try:
            limit_bytes = int((folder / limit).read_text())  # "max" where there is no limit
            used = int((folder / current).read_text())
            stat = (folder / "memory.stat").read_text()
        except (OSError, ValueError):
            continue
        if limit_bytes < UNLIMITED:
            return Memory(max(0, used - _field(stat, inactive)), limit_bytes, "container")
    return None


def _field(table: str, name: str) -> int:
    # inactive_file 12288
    return next((int(line.split()[1]) for line in table.splitlines() if line.split()[:1] == [name]), 0)


def machine_memory(meminfo: str) -> Memory:
    """Return the machine's memory from the text of /proc/meminfo.

    Raises:
        KeyError: it has no MemTotal or MemAvailable.
    """
    # MemTotal:       16384000 kB
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in meminfo.splitlines() if ":" in line}
    return Memory(values["MemTotal"] - values["MemAvailable"], values["MemTotal"], "machine")


def oom_kills(root: Path = CGROUP) -> int | None:
    """Return how many processes of this container the kernel killed for memory; None: nobody counts."""
    # oom_kill 3
    for name in ("memory.events", "memory/memory.oom_control"):
        try:
            return _field((root / name).read_text(), "oom_kill")
        except OSError:
            continue
    return None


@dataclass
class HostMeter:
    """Gives the ``data`` of a ``sample-host`` event."""

    pid: int
    folder: Path | None = None
    """Whose disk is watched: the run directory."""
    _tree: TreeMeter = field(init=False)

    def __post_init__(self) -> None:
        self._tree = TreeMeter(self.pid)

    def sample(self, now: float | None = None) -> dict[str, Any]:
        """Return one sample; what could not be read stands in ``unread`` with its reason."""
        unread: dict[str, Text] = {}
        data: dict[str, Any] = self._tree.sample(time.monotonic() if now is None else now)
        try:
            memory = cgroup_memory() or machine_memory(Path("/proc/meminfo").read_text())
            data |= {
                "memory_used_bytes": memory.used_bytes,
                "memory_limit_bytes": memory.limit_bytes,
                "memory_scope": memory.scope,
            }
        except (OSError, KeyError, ValueError) as error:
            unread["memory_used_bytes"] = t("memory could not be read: {error}", error=str(error))
        if self.folder is not None:
            try:
                disk = os.statvfs(self.folder)
                data["disk_free_bytes"] = disk.f_bavail * disk.f_frsize
            except OSError as error:
                unread["disk_free_bytes"] = t("the disk could not be read: {error}", error=str(error))
        return data | ({"unread": unread} if unread else {})
