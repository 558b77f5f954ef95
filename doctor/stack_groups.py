"""Stacks of a whole process tree told apart: each rank of a training with the processes below it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from doctor.stacks import Stack


@dataclass(frozen=True)
class Group:
    """What belongs together."""

    name: str
    """``rank 3``; empty: the training is one process."""
    pid: int
    stacks: tuple[Stack, ...]
    """As seen from that process: it is the root."""


def by_rank(stacks: Sequence[Stack], ranks: Mapping[int, int]) -> list[Group]:
    """Return a group for each rank seen, in order; one of all stacks where no process is a rank.

    ``ranks``: process -> rank.
    """
    seen = sorted(
        {pid for stack in stacks for pid in stack.pids if pid in ranks}, key=lambda pid: (ranks[pid], pid)
    )
    # A loader worker inherits its rank's variables: the rank itself is the outermost.
    seen = [
        pid
        for pid in seen
        if not any(pid in stack.pids[1:] and _above(stack, pid, ranks) for stack in stacks)
    ]
    if len(seen) < 2:
        return [Group("", stacks[0].pids[0], tuple(stacks))] if stacks else []
    return [Group(f"rank {ranks[pid]}", pid, tuple(below(stacks, pid))) for pid in seen]


def _above(stack: Stack, pid: int, ranks: Mapping[int, int]) -> bool:
    return any(one in ranks for one in stack.pids[: stack.pids.index(pid)])


def below(stacks: Sequence[Stack], pid: int) -> list[Stack]:
    """Return the stacks of ``pid`` and of what it started, with it as their root."""
    return [
        dataclasses.replace(stack, pids=stack.pids[stack.pids.index(pid) :])
        for stack in stacks
        if pid in stack.pids
    ]
