"""What a report of a run says, gathered from its directory alone: the plan, the machine, the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from doctor.machine import load_snapshot
from doctor.model import Snapshot
from doctor.own_script import kept_script
from doctor.proof_file import read_record
from doctor.proofs import ProofRecord
from runner.command_plan import CommandPlan, decode_any
from runner.events import RunEvent, number, read_events
from runner.plan import Plan, PlanError
from runner.rundir import RunDir
from runner.state import RunState
from runner.text import Text, t

if TYPE_CHECKING:
    from pathlib import Path

    from doctor.watching import RunWatcher


@dataclass(frozen=True)
class Page:
    """A run, read. A part that could not be read is None and stands in ``unread`` with the reason."""

    name: str
    status: str
    state: RunState
    now: float
    plan: Plan | CommandPlan | None = None
    snapshot: Snapshot | None = None
    unread: dict[str, Text] = field(default_factory=dict)
    frames: tuple[dict[str, Any], ...] = ()
    """The trainer's hottest functions, as ``sample-stacks`` lists them, over the whole run."""
    proof: ProofRecord | None = None
    """What ``doctor prove RUN`` kept; None: it was not proved."""
    script: tuple[str, ...] | None = None
    """The lines of the script that a command ran; None: none was kept."""


def collect(watcher: RunWatcher) -> Page:
    """Gather the page of a run that has been polled."""
    unread: dict[str, Text] = {}
    plan, snapshot = _plan(watcher.run, unread), _snapshot(watcher.run, unread)
    now = watcher.state.last_t or 0.0
    frames = tuple(mean_frames(event for event, _ in read_events(watcher.run.events / "sampler.jsonl")))
    proof = read_record(watcher.run.path / "proof.json")
    return Page(watcher.name, watcher.status(), watcher.state, now, plan, snapshot, unread, frames, proof, kept_script(watcher.run))  # fmt: skip


def mean_frames(events: Iterable[RunEvent], limit: int = 12) -> list[dict[str, Any]]:
    """Return the functions of the trainer's main thread with their mean shares over all windows, hottest first.

    A window lists its hottest functions only, so a mean is at most a little too low.
    """
    windows, sums = 0, dict[tuple[str, str], dict[str, Any]]()
    for event in events:
        if event.kind != "sample-stacks" or not event.data.get("samples"):
            continue
        windows += 1
        for frame in event.data.get("frames") or ():
            if frame.get("process") != "trainer" or frame.get("thread"):
                continue
            total = sums.setdefault(
                (frame["function"], frame["file"]), {**frame, "self_share": 0.0, "total_share": 0.0}
            )
            for share in ("self_share", "total_share"):
                total[share] += number(frame.get(share)) or 0.0
    means = [
        {**frame, "self_share": frame["self_share"] / windows, "total_share": frame["total_share"] / windows}
        for frame in sums.values()
    ]
    return sorted(means, key=lambda frame: (-frame["self_share"], -frame["total_share"]))[:limit]


def _plan(run: RunDir, unread: dict[str, Text]) -> Plan | CommandPlan | None:
    try:
        return decode_any(run.plan.read_bytes())
    except PlanError as error:
        unread["plan.json"] = error.problem
    except OSError as error:
        unread["plan.json"] = t("it could not be read: {error}", error=error.strerror or str(error))
    return None


def _snapshot(run: RunDir, unread: dict[str, Text]) -> Snapshot | None:
    try:
        return load_snapshot(run.snapshot)
    except (OSError, ValueError) as error:
        unread["snapshot.json"] = t("it could not be read: {error}", error=str(error))
    return None


def write_page(run: RunDir, html: str) -> tuple[Path | None, Text | None]:
    """Write ``report.html``; return its path, or None and why it could not be written."""
    temporary = run.report.with_name("report.html.tmp")
    try:
        temporary.write_text(html, "utf-8", errors="backslashreplace")
        temporary.replace(run.report)
    except OSError as error:
        why = error.strerror or str(error)
        return None, t("the report could not be written to {path}: {error}", path=str(run.report), error=why)
    return run.report, None
