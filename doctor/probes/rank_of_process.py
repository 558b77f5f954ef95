"""Which rank of a training a process is, by the variables that its launcher gave it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from doctor.probes.trainer_of import is_python


def ranks_among(pids: Iterable[int], proc: Path = Path("/proc")) -> dict[int, int]:
    """Return process -> rank of the Pythons that a launcher (torchrun, ours, SLURM) started; what cannot be read is left out."""
    found: dict[int, int] = {}
    for pid in pids:
        if is_python(pid) and (rank := _rank(proc / str(pid) / "environ")) is not None:
            found[pid] = rank
    return found


def _rank(environ: Path) -> int | None:
    # RANK=1\0LOCAL_RANK=1\0WORLD_SIZE=2
    try:
        content = environ.read_bytes()
    except OSError:
        return None
    told = dict(entry.split(b"=", 1) for entry in content.split(b"\0") if b"=" in entry)
    rank, size = told.get(b"RANK", b""), told.get(b"WORLD_SIZE", b"")
    return int(rank) if rank.isdigit() and size.isdigit() and int(size) > 1 else None
