"""A run read from its directory, live or over: the same reader, the same fold. Nothing here writes."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doctor.event_shapes import sound_events
from doctor.glance import glance, is_long
from doctor.log_follow import last_lines
from doctor.run_ends import first_and_last
from doctor.trainer_pid import is_written_here, trainer_alive
from doctor.writer_clock import WriterClock
from runner.damage import damage_of
from runner.events import EventFollower, whole
from runner.rundir import RunDir, is_run, runs_home
from runner.state import RunState, fold, state_as_dict
from runner.text import Text, t

ALIVE_EVERY_S = 1.0
RESUMING_AFTER_S = 5.0


class RunWatcher:
    """Follows one run. ``poll`` folds what is new; it may wait for a disk, so a screen calls it in the background."""

    is_ours = True

    def __init__(self, run: RunDir, clock: Callable[[], float] = time.time) -> None:
        self.run = run
        self.state = RunState()
        self.alive: bool | None = None
        self._clock = clock
        self._follower = EventFollower(run.events)
        self._asked_at = -1e9
        self._damage: list[Text] = []
        self._writer = WriterClock(is_written_here(run))
        self.is_gone = False
        """Its directory was there and is not any more."""

    @property
    def name(self) -> str:
        return self.run.name

    def poll(self) -> RunState:
        """Fold in the events that came since the last call and return the state (the same object from call to call)."""
        self._ask_alive()  # before reading: what a trainer wrote before it ended is then surely read
        if self.state.is_approximate:
            return self._read_whole()
        for event in sound_events(self._follower.each_new()):
            self.state.add(event)
        self._writer.hear(self.state.last_t, self._clock())
        self.state.damage = self._damage
        return self.state

    def _ask_alive(self) -> None:
        now = time.monotonic()
        if now - self._asked_at >= ALIVE_EVERY_S:
            self._asked_at = now
            alive = trainer_alive(self.run)
            self.is_gone = self.state.last_t is not None and _is_removed(self.run.path)
            self.alive = False if self.is_gone else alive
            if self.is_gone:
                self._damage = [t("{path} was removed while it was watched", path=str(self.run.path))]
            elif not self.state.started:
                self._damage = damage_of(self.run)

    def trainer_ended(self) -> None:
        """Take note that the trainer is gone: whoever started it knows before the next look."""
        self.alive = False

    def status(self) -> str:
        """Return ``starting running stalled stopped completed failed non-finite lost damaged``."""
        now, spoke_at = self.now(), self.state.last_trainer_t
        if self.state.supervised:  # alive after its end: its supervisor, with what is to be done on finish
            return self.state.status_at(now, self.alive)
        if self.state.finished and self.alive and spoke_at is not None:
            if self.state.is_begun_anew or now - spoke_at > RESUMING_AFTER_S:
                return "starting"  # finished once, and resumed: the new trainer has not said where it goes on
        return self.state.status_at(now, self.alive)

    def now(self) -> float:
        """Return the time by the clock of whoever writes the run, in seconds since the epoch."""
        return self._writer.now(self._clock())

    def is_over(self) -> bool:
        """Return whether nothing more will come: its trainer is gone, or it said so and nobody can look."""
        return self.alive is False or (bool(self.state.finished) and self.alive is None)

    def _read_whole(self) -> RunState:
        """Replace what a glance showed by the whole; the old state stays in place, and shown, until then."""
        whole = RunState()
        for event in sound_events(self._follower.each_new()):
            whole.add(event)
        whole.damage = self._damage
        self._writer.hear(whole.last_t, self._clock())
        self.state = whole
        return whole

    def settle(self) -> None:
        """Read until there is something to show: what is on the disk now, of a long run the ends and a part of the rest."""
        if self.state.last_t is None and is_long(self.run):
            self._ask_alive()
            self.state = glance(self.run)
            self._writer.hear(self.state.last_t, self._clock())
        else:
            self.poll()

    def close(self) -> None:
        """Nothing is kept open between two polls."""

    def as_dict(self) -> dict[str, Any]:
        """Return what ``doctor watch --json`` prints."""
        return {"run": self.name, "path": str(self.run.path)} | state_as_dict(
            self.state, self.now(), self.alive
        )

    def log_tail(self, lines: int = 20) -> list[str]:
        """Return the last lines of the trainer's log."""
        return last_lines(self.run.trainer_log, lines)


def _is_removed(path: Path) -> bool:
    """Return whether a directory is gone: a disk that merely does not answer is another error."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


@dataclass(frozen=True)
class RunSummary:
    """One row of ``doctor runs``."""

    name: str
    path: str
    status: str
    step: int
    steps_total: int | None
    started_at: float | None
    """Seconds since the epoch; None: it has said nothing yet."""
    seconds: float | None
    loss: float | None
    metrics: dict[str, float]
    """Of the newest evaluation."""
    damage: tuple[str, ...] = ()
    """What of its directory cannot be read, and where, in English."""
    processes: int = 1
    """That train together, on all machines."""


def list_runs(home: Path | None = None) -> list[RunSummary]:
    """Return the runs under ``home`` (default: :func:`runs_home`), newest first.

    A folder that may not be read is one row that says so: it is not a folder without runs.
    """
    folder = home or runs_home()
    try:
        paths = [path for path in folder.iterdir() if is_run(path)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return [_unreadable(str(folder), folder)]
    return sorted((summarise(RunDir(path)) for path in paths), key=lambda row: -(row.started_at or 0.0))


def summarise(run: RunDir) -> RunSummary:
    """Fold the trainer's events alone (the sampler's are many and say nothing of this).

    A run whose events may not be read has the status ``unreadable``; the others are listed all the same.
    """
    state = RunState()
    try:
        run.plan.stat()
        files = [first_and_last(path) for path in sorted(run.events.glob("trainer-*.jsonl"))]
        fold(sound_events(heapq.merge(*files, key=lambda event: event.t)), state)
        state.damage = [] if state.started else damage_of(run)
    except OSError:
        return _unreadable(run.name, run.path)
    alive, now = trainer_alive(run), time.time()
    evaluation = state.evaluations[-1].data if state.evaluations else {}
    over_at = now if alive and not state.finished else state.last_trainer_t
    return RunSummary(
        name=run.name,
        path=str(run.path),
        status=state.status_at(now, alive),
        step=state.step,
        steps_total=state.steps_total,
        started_at=state.first_t,
        seconds=None if state.first_t is None or over_at is None else over_at - state.first_t,
        loss=state.loss.values[-1] if state.loss.values else None,
        metrics={name: float(value) for name, value in evaluation.items() if _is_metric(name, value)},
        damage=tuple(str(text) for text in state.damage),
        processes=max(1, whole(state.started.get("world_size"), 1) or 1),
    )


def _unreadable(name: str, path: Path) -> RunSummary:
    return RunSummary(name, str(path), "unreadable", 0, None, None, None, None, {})


def _is_metric(name: str, value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and name not in ("samples", "seconds", "loss")
    )
