"""What a run takes of its machine: CPU and memory of its processes, memory of the container, room on its disk."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doctor.probes.host_rates import HostRates
from doctor.probes.tree_meter import TreeMeter
from runner.text import t

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
class CpuLimit:
    """How often the kernel stopped this container at its CPU limit, between two looks."""

    root: Path = CGROUP
    _before: tuple[int, int] | None = None

    def sample(self) -> dict[str, float]:
        """Return cpu_cores_usable and cpu_throttled_pct (0 to 100); what nobody counts is left out."""
        cores = float(len(os.sched_getaffinity(0)))
        quota = _cpu_quota_cores(self.root)
        data = {"cpu_cores_usable": min(cores, quota) if quota else cores}
        counts = self._counts() if quota else None
        if counts and self._before and counts[0] > self._before[0]:
            periods, stopped = counts[0] - self._before[0], counts[1] - self._before[1]
            data["cpu_throttled_pct"] = round(100 * max(0, stopped) / periods, 1)
        self._before = counts
        return data

    def _counts(self) -> tuple[int, int] | None:
        # nr_periods 7310
        # nr_throttled 12
        for name in ("cpu.stat", "cpu/cpu.stat"):
            try:
                table = (self.root / name).read_text()
            except OSError:
                continue
            if "nr_periods" in table:
                return _field(table, "nr_periods"), _field(table, "nr_throttled")
        return None


def _cpu_quota_cores(root: Path) -> float | None:
    """Return how many cores' worth of time the container may use; None: no limit that can be seen from within."""
    try:
        quota, period = (root / "cpu.max").read_text().split()  # 150000 100000, or: max 100000
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass  # no cgroup v2 here: v1 is asked next
    try:
        quota_us = int((root / "cpu/cpu.cfs_quota_us").read_text())  # -1: no limit
        return quota_us / int((root / "cpu/cpu.cfs_period_us").read_text()) if quota_us > 0 else None
    except (OSError, ValueError):
        return None


@dataclass
class HostMeter:
    """Gives the ``data`` of a ``sample-host`` event."""

    pid: int
    folder: Path | None = None
    """Whose disk is watched: the run directory."""
    _tree: TreeMeter = field(init=False)
    _limit: CpuLimit = field(default_factory=CpuLimit)
    _rates: HostRates = field(default_factory=HostRates)

    def __post_init__(self) -> None:
        self._tree = TreeMeter(self.pid)

    def sample(self, now: float | None = None) -> dict[str, Any]:
        """Return one sample; what could not be read stands in ``unread`` with its reason."""
        now = time.monotonic() if now is None else now
        data: dict[str, Any] = self._tree.sample(now)
        data |= self._limit.sample()
        rates, unread = self._rates.sample(self._tree.pids, now)
        data |= rates
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
