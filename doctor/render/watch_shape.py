"""What one line of ``doctor watch --json`` holds, for its JSON Schema (``doctor help --schema watch``). Nothing is decoded with it.

Keys are only ever added. What is not known is null or not there; a number that is none is ``"nan"``, ``"inf"`` or ``"-inf"``.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runner.alerts import Alert
from runner.verdict_case import Verdict

Number = float | Literal["nan", "inf", "-inf"] | None
Status = Literal[
    "starting", "running", "stalled", "stopped", "interrupted", "completed", "failed", "non-finite", "lost", "damaged", "ended"
]  # fmt: skip
Table = dict[str, Any] | None

DESCRIPTIONS = {
    "run": "Its name; a process that the doctor did not start has pid instead of run and path.",
    "ranks": "Of several processes: world_size, ranks [{rank, step, last_t, step_seconds, ...}], slowest, behind.",
    "damage": "What of the run directory cannot be read, in English.",
    "last": "The newest step: keys of a step event (runner/events.py), as the following ones are of theirs.",
    "evaluation": "The newest evaluation.",
    "evaluating": "How far the evaluation under way is: done, total (batches).",
    "memory": "The first steps' peak, foretold and measured.",
    "host": "The newest sample of the machine (sample-host).",
    "gpus": "The newest sample of the cards (sample-gpu); seen_at (epoch seconds): when, where they cannot be read any more.",
    "xids": "The newest Xids, oldest first; empty says something only where xid_source names a source.",
    "xid_source": "Where Xids are read (source), or why nowhere (why).",
    "stacks": "The newest window of stacks (sample-stacks).",
    "standing": "Where a silent trainer stands: file (inside the run directory), waits, place.",
    "finished": "How it ended (run-finished).",
}


class WatchLine(msgspec.Struct, kw_only=True):
    """A run, or a process that the doctor did not start, once a second until it is over."""

    run: str | None = None
    path: str | None = None
    pid: int | None = None
    status: Status
    verdict: Verdict
    alerts: list[Alert]
    ranks: Table
    damage: list[str]
    step: int
    steps_total: int | None
    eta_seconds: Number
    last: Table
    evaluation: Table
    evaluating: Table
    checkpoint: Table
    memory: Table
    samples_seen: int
    padding_share: Number
    non_finite_losses: int
    host: Table
    gpus: Table
    xids: list[dict[str, Any]]
    xid_source: Table
    stacks: Table
    standing: Table
    finished: Table
