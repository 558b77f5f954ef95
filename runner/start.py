"""How many processes a run is started with, and the words that say so to the runner. No torch."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Start(msgspec.Struct, frozen=True):
    """How many processes are started, where, and where they meet."""

    nproc: int = 1
    """On this machine."""
    nnodes: int = 1
    node_rank: int = 0
    master: str = ""
    """``HOST:PORT`` on the first machine; empty: there is one machine."""

    @property
    def world_size(self) -> int:
        return self.nproc * self.nnodes

    @property
    def flags(self) -> list[str]:
        """What the runner is started with; :func:`start_of` reads them back."""
        found = [f"--nproc={self.nproc}"]
        if self.nnodes > 1:
            found += [f"--nnodes={self.nnodes}", f"--node-rank={self.node_rank}", f"--master={self.master}"]
        return found


def start_of(flags: Sequence[str]) -> Start:
    """Return what ``--nproc=2 --nnodes=2 ...`` say. Raises ValueError."""
    told = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    start = Start(
        int(told.get("nproc", 1)),
        int(told.get("nnodes", 1)),
        int(told.get("node-rank", 0)),
        told.get("master", ""),
    )
    if (
        start.nproc < 1
        or not 0 <= start.node_rank < start.nnodes
        or (start.nnodes > 1 and ":" not in start.master)
    ):
        raise ValueError(f"cannot start {' '.join(flags)}")
    return start
