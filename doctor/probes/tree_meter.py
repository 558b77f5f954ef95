"""What a process and its children use between two looks, and whether one of them stands in a device or is paused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from doctor.probes.process_tree import TICKS_PER_S, Stat, read_stat, tree_of

WALK_EVERY_S = 15.0
"""Between two walks over all threads' children: of 300 threads that is 300 files. What main threads start is seen at once."""


@dataclass
class TreeMeter:
    """Turns two looks at a process tree into a CPU share."""

    pid: int
    _ticks: dict[tuple[int, int], int] | None = None
    _at: float = 0.0
    _walk_at: float = field(default=float("-inf"))

    @property
    def pids(self) -> list[int]:
        """The processes of the newest sample."""
        return [pid for pid, _ in self._ticks or ()]

    def sample(self, now: float) -> dict[str, Any]:
        """Return cpu_pct (100: one core; None at first), rss_bytes, processes, threads, blocked (in state D) and paused of the tree."""
        tree = self._tree(now)
        ticks = {(pid, stat.start_ticks): stat.cpu_ticks for pid, stat in tree.items()}
        cpu_pct = None
        if self._ticks is not None and now > self._at:
            used = sum(max(0, count - self._ticks.get(key, 0)) for key, count in ticks.items())
            cpu_pct = round(100 * used / TICKS_PER_S / (now - self._at), 1)
        self._ticks, self._at = ticks, now
        states = [stat.state for stat in tree.values()]
        return {
            "cpu_pct": cpu_pct,
            "rss_bytes": sum(stat.rss_bytes for stat in tree.values()),
            "processes": len(tree),
            "threads": sum(stat.threads for stat in tree.values()),
            "blocked": states.count("D"),
            "paused": states.count("T") + states.count("t"),
        }

    def _tree(self, now: float) -> dict[int, Stat]:
        if now >= self._walk_at:
            self._walk_at = now + WALK_EVERY_S
            return tree_of(self.pid)
        tree = tree_of(self.pid, of_all_threads=False)
        for pid, start_ticks in self._ticks or ():  # children of side threads, found by the last walk
            stat = None if pid in tree else read_stat(pid)
            if stat is not None and stat.start_ticks == start_ticks and stat.state not in "ZX":
                tree[pid] = stat
        return tree
