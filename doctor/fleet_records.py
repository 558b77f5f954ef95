"""Many machines judged together, as records: who they are, and what was found. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from doctor.model import Finding, Record, Snapshot

NAMES_SHOWN = 6


class Member(Record, frozen=True):
    """One machine or rank."""

    name: str
    """``rank 3``, or its snapshot's file."""
    snapshot: Snapshot
    host: str = ""
    """The machine of a rank; empty: a snapshot's, which has no name."""
    measures: dict[str, float] = {}
    """Seconds by what was measured: ``matmul_cpu``, ``all_reduce``; smaller is better."""
    clock_s: float | None = None
    """How far its clock is ahead of the first member's, as measured over the network."""


class Shared(Record, frozen=True):
    """A finding of single machines, with those that have it."""

    finding: Finding
    members: tuple[str, ...]


class Unread(Record, frozen=True):
    """A section that some members could not read: there nothing was compared."""

    section: str
    members: tuple[str, ...]


class FleetReport(Record, frozen=True):
    """What judging a fleet gave."""

    members: tuple[str, ...]
    differences: tuple[Finding, ...] = ()
    """Worst first."""
    shared: tuple[Shared, ...] = ()
    """What ``doctor check`` says on each, once for all that have it; worst first."""
    alike: tuple[str, ...] = ()
    """Aspects that were read on all and are the same."""
    unread: tuple[Unread, ...] = ()

    def findings(self) -> list[Finding]:
        return [*self.differences, *(one.finding for one in self.shared)]


def with_hosts(members: Sequence[Member]) -> list[Member]:
    """Return members named with their machines, where there are several: ``rank 3 (node02)``."""
    if len({one.host for one in members}) < 2:
        return list(members)
    return [replace(one, name=f"{one.name} ({one.host})") if one.host else one for one in members]


def some_names(names: Sequence[str]) -> str:
    """``rank 3, rank 7, ... (12)``: the first few, then how many in all."""
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown}, ... ({len(names)})"
