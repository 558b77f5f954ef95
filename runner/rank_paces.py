"""The processes of one training side by side, from ``trainer-0.jsonl``, ``trainer-1.jsonl`` ...: how far and how fast each is.

In data parallel training all ranks end a step together, so the step time says nothing of who is slow. What a rank does by itself
(data, copy, forward) does: the others wait for it in backward. Of a model cut into parts the forward pass waits too: weights are
put together in it, and only data and copy are a rank's own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.events import RunEvent, amount, table, whole
from runner.strategy_choice import IN_PARTS

RECENT_STEPS = 20
OWN_PARTS: tuple[str, ...] = ("data", "copy", "forward")
OWN_PARTS_SHARDED: tuple[str, ...] = ("data", "copy")
SLOWER_RATIO = 1.15
"""So much more own work than the middle rank is worth naming."""
SLOWER_SHARE = 0.05
"""And it must be so much of the step."""
MOST_RANKS = 4096
# trainer-12
_RANK = re.compile(r"trainer-(\d{1,6})")


def rank_of(source: str) -> int:
    """Return the rank that a writer's name gives; 0 for a writer that is no rank."""
    found = _RANK.fullmatch(source)
    return int(found[1]) if found else 0


def _recent() -> deque[float]:
    return deque(maxlen=RECENT_STEPS)


def _recent_splits() -> deque[dict[str, float]]:
    return deque(maxlen=RECENT_STEPS)


@dataclass
class RankPace:
    """One rank, over its newest steps."""

    step: int = 0
    t: float = 0.0
    """When it spoke last."""
    outcome: str = ""
    seconds: deque[float] = field(default_factory=_recent)
    splits: deque[dict[str, float]] = field(default_factory=_recent_splits)
    tokens: deque[float] = field(default_factory=_recent)
    samples: deque[float] = field(default_factory=_recent)

    def add_step(self, event: RunEvent) -> None:
        self.step = whole(event.step, self.step) or self.step
        data = event.data
        seconds = amount(data.get("seconds")) or 0.0
        if seconds <= 0:
            return
        self.seconds.append(seconds)
        for kept, name in ((self.tokens, "tokens"), (self.samples, "samples")):
            if (count := amount(data.get(name))) is not None:
                kept.append(count / seconds)
        split = table(data.get("split"))
        if any(name in split for name in OWN_PARTS):
            self.splits.append({name: amount(split.get(name)) or 0.0 for name in OWN_PARTS})

    def row(self, rank: int, own_parts: Sequence[str] = OWN_PARTS) -> dict[str, Any]:
        """Return the rank as ``doctor watch --json`` has it; None: it was not told."""
        return {
            "rank": rank,
            "step": self.step,
            "last_t": self.t,
            "step_seconds": _middle(self.seconds),
            "own_seconds": _middle([sum(split[name] for name in own_parts) for split in self.splits]),
            "own_parts": list(own_parts),
            "tokens_per_s": _middle(self.tokens),
            "samples_per_s": _middle(self.samples),
            "outcome": self.outcome or None,
        }


class RankPaces:
    """All ranks that wrote; empty where one process trains alone."""

    def __init__(self) -> None:
        self._ranks: dict[int, RankPace] = {}
        self._own_parts = OWN_PARTS

    def __bool__(self) -> bool:
        return bool(self._ranks)

    def add(self, event: RunEvent) -> None:
        """Fold in an event of a rank; of rank 0 only once another has spoken."""
        rank = rank_of(event.source)
        if rank not in self._ranks and len(self._ranks) >= MOST_RANKS:
            return
        pace = self._ranks.setdefault(rank, RankPace())
        pace.t = event.t
        if event.kind == "run-started":
            self._own_parts = OWN_PARTS_SHARDED if event.data.get("strategy") in IN_PARTS else OWN_PARTS
            self._ranks[rank] = RankPace(step=whole(event.data.get("resumed_from_step"), 0) or 0, t=event.t)
        elif event.kind == "step":
            pace.add_step(event)
        elif event.kind == "run-finished":
            pace.outcome = str(event.data.get("outcome") or "completed")

    def rows(self) -> list[dict[str, Any]]:
        return [pace.row(rank, self._own_parts) for rank, pace in sorted(self._ranks.items())]

    def total(self, name: str, world_size: int | None) -> float | None:
        """Return the sum of ``tokens_per_s`` or ``samples_per_s`` over all ranks; None where one of them did not tell."""
        values = [row[name] for row in self.rows()]
        if not values or None in values or (world_size is not None and len(values) != world_size):
            return None
        return float(sum(values))

    def slowest(self) -> dict[str, Any] | None:
        """Return the rank that the others wait for: clearly more work of its own than the middle one; None: there is none."""
        rows = self.rows()
        if len(rows) < 2 or any(row["own_seconds"] is None for row in rows):
            return None
        *others, worst = sorted(rows, key=lambda row: float(row["own_seconds"]))
        middle = float(others[len(others) // 2]["own_seconds"])
        more = worst["own_seconds"] - middle
        if worst["own_seconds"] < SLOWER_RATIO * middle or more < SLOWER_SHARE * worst["step_seconds"]:
            return None
        return {**worst, "middle_own_seconds": middle}

    def behind(self) -> dict[str, Any] | None:
        """Return a rank that is more than one step behind the first of them and still trains; None: they keep together."""
        going = [row for row in self.rows() if row["outcome"] is None]
        if len(going) < 2:
            return None
        last, first = min(going, key=lambda row: int(row["step"])), max(int(row["step"]) for row in going)
        return {**last, "steps_behind": first - last["step"]} if first - last["step"] > 1 else None

    def as_dict(self, started: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return all of it for programs; None where one process trains alone."""
        if not self:
            return None
        world = whole(started.get("world_size"), None)
        return {
            "world_size": world,
            "ranks": self.rows(),
            "slowest": self.slowest(),
            "behind": self.behind(),
            "tokens_per_s": self.total("tokens_per_s", world),
            "samples_per_s": self.total("samples_per_s", world),
        }


def _middle(values: Sequence[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None
