"""Processes that carry a variable which only one command was given: whatever their parent, group or session is now."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from doctor.probes.process_tree import read_stat


def processes_with(name: str, value: str) -> Iterator[tuple[int, int]]:
    """Yield (pid, start ticks) of every process, ours aside, that was started with ``name=value`` in its environment.

    A zombie has no environment any more, and another user's cannot be read: neither is among them.
    """
    word = os.fsencode(f"{name}={value}")
    for folder in _folders():
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # gone meanwhile, or another user's
            continue
        pid = int(folder.name)
        stat = read_stat(pid)
        if word in variables and stat is not None and stat.state not in "ZX" and pid != os.getpid():
            yield pid, stat.start_ticks


def _folders() -> list[Path]:
    try:
        return [folder for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    except OSError:
        return []


def catches(pid: int, number: int) -> bool | None:
    """Return whether a process has a handler of its own for a signal; None: nobody can tell, or it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    # SigCgt:	0000000000004002
    masks = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")]
    return bool(masks[0] >> (number - 1) & 1) if masks else None
