"""Which of how many processes this one is, as torchrun (or SLURM, through the launcher) says in variables. No torch."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

TOGETHER = "DOCTOR_TOGETHER"
"""Set by :mod:`runner.together`, which started the processes and is the trainer for the outside."""


SHARES_RUN = "DOCTOR_SHARES_RUN"
"""All machines see one run directory: rank 0 alone makes what lies in it."""
OWN_CARDS = "DOCTOR_OWN_CARDS"
"""Each process sees cards that no other does."""


class RankPlace(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a run."""

    rank: int = 0
    """Over all machines, from 0."""
    size: int = 1
    """Processes of the run."""
    local_rank: int = 0
    """On this machine: which card is its own."""
    local_size: int = 1
    """On this machine: they share its cores and memory."""
    has_own_cards: bool = False
    """It sees its own cards alone, from 0 (srun --gpus-per-task)."""
    shares_run: bool = False
    """All machines see one run directory."""
    has_parent: bool = False
    """A launcher of ours stands for them all."""

    @property
    def card(self) -> int:
        """The number of its card among those that it sees."""
        return 0 if self.has_own_cards else self.local_rank

    @property
    def is_first(self) -> bool:
        """Whether it decides and writes for all."""
        return self.rank == 0

    @property
    def prepares(self) -> bool:
        """Whether it makes what lies in this machine's run directory for the others here."""
        return self.rank == 0 if self.shares_run else self.local_rank == 0

    @property
    def preparer(self) -> int:
        """The rank that prepares what this one reads."""
        return 0 if self.shares_run else self.rank - self.local_rank

    @property
    def source(self) -> str:
        """The writer's name in events: ``trainer-0``."""
        return f"trainer-{self.rank}"


def rank_place(environ: Mapping[str, str] | None = None) -> RankPlace:
    """Return where this process stands; alone where nobody says anything."""
    told = os.environ if environ is None else environ

    def count(name: str, otherwise: int) -> int:
        value = told.get(name, "")
        return int(value) if value.isdecimal() else otherwise

    size = count("WORLD_SIZE", 1)
    if size <= 1:
        return RankPlace(has_parent=TOGETHER in told)
    return RankPlace(
        rank=count("RANK", 0), size=size, local_rank=count("LOCAL_RANK", 0),
        local_size=count("LOCAL_WORLD_SIZE", 1), has_parent=TOGETHER in told, shares_run=SHARES_RUN in told,
        has_own_cards=OWN_CARDS in told,
    )  # fmt: skip


def threads_each(threads: int, place: RankPlace) -> int:
    """Return the cores of one process: its part of the machine's."""
    return max(1, threads // place.local_size)
