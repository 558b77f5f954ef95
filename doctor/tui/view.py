"""A frozen copy of a RunState for the screen, made in the background: drawing never races with reading."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from doctor.expectations import Expected
from doctor.run_mfu import mfu_of
from doctor.tui.view_log import Entry, entries_of
from runner.alerts import Alert
from runner.curve import Curve, smoothed
from runner.state import RunState
from runner.text import Text
from runner.verdict import Verdict, is_worth_saying, verdict_of

if TYPE_CHECKING:
    from doctor.tui.source import Watcher

LOG_LINES = 40
"""Of the end of the trainer's log."""


class Series(NamedTuple):
    """Points of one curve; the two lists have one length."""

    steps: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def smoothed(self) -> list[float]:
        return smoothed(self.values)


NO_POINTS = Series()


@dataclass(frozen=True)
class RunView:
    """What one look at a run showed. Nothing in it changes afterwards."""

    name: str
    status: str
    now: float
    started: dict[str, Any] = dataclasses.field(default_factory=dict)
    finished: dict[str, Any] = dataclasses.field(default_factory=dict)
    step: int = 0
    steps_total: int | None = None
    eta_s: float | None = None
    elapsed_s: float | None = None
    first_t: float | None = None
    last_t: float | None = None
    """When the first and the newest event were written."""
    silent_s: float | None = None
    """Seconds since the trainer last wrote."""
    last: dict[str, Any] = dataclasses.field(default_factory=dict)
    padding_share: float | None = None
    non_finite_losses: int = 0
    loss: Series = NO_POINTS
    loss_smoothed: Series = NO_POINTS
    eval_loss: Series = NO_POINTS
    lr: Series = NO_POINTS
    grad_norm: Series = NO_POINTS
    samples_per_s: Series = NO_POINTS
    tokens_per_s: Series = NO_POINTS
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    """Newest value of each evaluation metric."""
    split_seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """Where the time since the first step went: the parts of the steps, evaluating, saving."""
    mfu: float | None = None
    mfu_why: Text | None = None
    """Why there is none."""
    expected: Expected | None = None
    memory: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The first steps' peak, foretold and measured: the ``memory`` event."""
    host: dict[str, Any] = dataclasses.field(default_factory=dict)
    gpus: dict[str, Any] = dataclasses.field(default_factory=dict)
    ranks: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The processes of one training; empty where one trains alone."""
    xids: tuple[dict[str, Any], ...] = ()
    """Newest last."""
    xid_source: dict[str, Any] = dataclasses.field(default_factory=dict)
    stacks: dict[str, Any] = dataclasses.field(default_factory=dict)
    preparing: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How far the rows are tokenised: the newest ``preparing`` event."""
    on_finish: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What is to be done when a command of the user's own has ended: the newest ``on-finish`` event."""
    seconds_a_step: float | None = None
    """Of a command that tells no samples."""
    damage: tuple[Text, ...] = ()
    """What of the run directory cannot be read, and where."""
    log: tuple[Entry, ...] = ()

    verdict: Verdict | None = None
    """Where the time goes; None where there is nothing worth saying."""
    alerts: tuple[Alert, ...] = ()
    is_approximate: bool = False
    """Of a long run only a part was read so far."""
    is_over: bool = False
    """Nothing more will come."""
    is_ours: bool = True
    """False: a process that is no run of ours, and not ours to stop."""
    is_past: bool = False
    """As it was at ``now``, not as it is."""
    trainer_log: tuple[str, ...] = ()
    """The end of the trainer's log."""

    @property
    def went_wrong(self) -> bool:
        return self.status in ("failed", "lost", "non-finite")


def look_at(
    watcher: Watcher, now: float, is_first: bool = False, expected: Expected | None = None
) -> RunView:
    """Poll ``watcher`` and return a copy of what it knows at wall time ``now`` (seconds since the epoch).

    The first look at a long run is a quick one.
    """
    if is_first:
        watcher.settle()
    state, status = watcher.state if is_first else watcher.poll(), watcher.status()
    view = view_of(state, watcher.name, status, now, expected)
    return dataclasses.replace(
        view,
        is_over=watcher.is_over(),
        is_ours=watcher.is_ours,
        trainer_log=tuple(watcher.log_tail(LOG_LINES)),
    )


def look_back(state: RunState, name: str, at: float, expected: Expected | None = None) -> RunView:
    """Return a run as it was at wall time ``at``, from what had been written by then."""
    return dataclasses.replace(view_of(state, name, state.status_at(at), at, expected), is_past=True)


def view_of(state: RunState, name: str, status: str, now: float, expected: Expected | None = None) -> RunView:
    """Return ``state`` as it is now, copied; ``now`` is wall time in seconds since the epoch."""
    end = state.last_trainer_t if state.finished or status == "lost" else now
    verdict = verdict_of(state, status, now)
    use = mfu_of(state, expected)
    return RunView(
        name=name,
        status=status,
        now=now,
        started=state.started,
        finished=state.finished,
        step=state.step,
        steps_total=state.steps_total,
        eta_s=state.eta_seconds() if status in ("running", "starting") else None,
        elapsed_s=None if state.first_t is None or end is None else max(0.0, end - state.first_t),
        silent_s=None if state.last_trainer_t is None else max(0.0, now - state.last_trainer_t),
        last=state.last,
        padding_share=state.padding_share(),
        non_finite_losses=state.non_finite_losses,
        loss=_series(state.loss),
        loss_smoothed=Series(tuple(state.loss.steps), tuple(state.loss.smoothed())),
        eval_loss=_series(state.eval_loss),
        lr=_series(state.lr),
        samples_per_s=_series(state.samples_per_s),
        tokens_per_s=_series(state.tokens_per_s),
        metrics={key: curve.values[-1] for key, curve in state.metrics.items() if len(curve)},
        grad_norm=_series(state.grad_norm),
        split_seconds=_split(state),
        mfu=None if isinstance(use, Text) else use,
        mfu_why=use if isinstance(use, Text) else None,
        expected=expected,
        memory=state.memory,
        host=state.host,
        gpus=state.gpus,
        ranks=state.ranks.as_dict(state.started) or {},
        xids=tuple(state.xids),
        xid_source=state.xid_source,
        stacks=state.stacks,
        preparing=state.preparing,
        on_finish=state.on_finish,
        seconds_a_step=state.seconds_a_step(),
        damage=tuple(state.damage),
        first_t=state.first_t,
        last_t=state.last_t,
        verdict=verdict if is_worth_saying(verdict, status, state.step) else None,
        alerts=tuple(state.alerts.open()),
        is_approximate=state.is_approximate,
        log=entries_of(state),
    )


def _split(state: RunState) -> dict[str, float]:
    aside = {"evaluation": state.windows.whole.evaluation_s, "saving": state.windows.whole.saving_s}
    return {**state.split_seconds, **{name: seconds for name, seconds in aside.items() if seconds > 0}}


def _series(curve: Curve) -> Series:
    return Series(tuple(curve.steps), tuple(curve.values))
