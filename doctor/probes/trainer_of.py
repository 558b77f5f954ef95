"""Which process of a command's tree trains: below a shell script or a launcher, the Python that computes."""

from __future__ import annotations

from pathlib import Path

from doctor.probes.process_tree import Stat, tree_of

FAR_AHEAD = 2.0
"""So many times the CPU time of the process chosen before, and another one takes its place: ranks stay neck and neck."""


def busiest_python(root: int, chosen: int | None = None) -> int:
    """Return the Python of ``root``'s tree that has used most CPU time; ``chosen`` before stays until it is far behind.

    Without any Python in the tree it is ``root`` itself: whoever looks there says why there are no stacks.
    """
    pythons = {pid: stat for pid, stat in tree_of(root).items() if is_python(pid)}
    if not pythons:
        return root
    busiest = max(pythons, key=lambda pid: pythons[pid].cpu_ticks)
    if chosen in pythons and not _far_ahead(pythons[busiest], pythons[chosen]):
        return chosen
    return busiest


def _far_ahead(busiest: Stat, chosen: Stat) -> bool:
    return busiest.cpu_ticks > FAR_AHEAD * chosen.cpu_ticks


def is_python(pid: int) -> bool:
    """Return whether a process runs a Python, by the name of its program: ``/usr/bin/python3.11``."""
    try:
        name = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False
    return name.startswith(("python", "pypy"))
