"""Which process of a command's tree trains: below a shell script or a launcher, the Python that computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from doctor.probes.process_tree import tree_of

FAR_AHEAD = 2.0
"""So many times the CPU time of the process chosen before, and another one takes its place: ranks stay neck and neck."""


@dataclass
class BusiestPython:
    """Looks at a tree again and again: what counts is the CPU time since the look before."""

    root: int
    _chosen: int | None = None
    _ticks: dict[tuple[int, int], int] = field(default_factory=dict)

    def find(self) -> int:
        """Return the Python of the tree that computes most; the one chosen before stays until it is far behind.

        Without any Python in the tree it is the root itself: whoever looks there says why there are no stacks.
        """
        pythons = {pid: stat for pid, stat in tree_of(self.root).items() if is_python(pid)}
        ticks = {(pid, stat.start_ticks): stat.cpu_ticks for pid, stat in pythons.items()}
        used = {key[0]: count - self._ticks.get(key, 0) for key, count in ticks.items()}
        self._ticks = ticks
        if not used:
            return self.root
        busiest = max(used, key=lambda pid: used[pid])
        if self._chosen not in used or used[busiest] > FAR_AHEAD * used[self._chosen]:
            self._chosen = busiest
        return self._chosen


def busiest_python(root: int) -> int:
    """Return the Python of ``root``'s tree that has used most CPU time in its life so far."""
    return BusiestPython(root).find()


def is_python(pid: int) -> bool:
    """Return whether a process runs a Python, by the name of its program: ``/usr/bin/python3.11``."""
    try:
        name = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False
    return name.startswith(("python", "pypy"))
