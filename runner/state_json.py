"""A run's state as ``doctor watch --json`` prints it: for other programs, a line a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from runner.verdict import verdict_of

if TYPE_CHECKING:
    from runner.state import RunState


def state_as_dict(state: RunState, now: float, trainer_alive: bool | None = None) -> dict[str, Any]:
    """Return the JSON form of ``doctor watch --json``."""
    status = state.status_at(now, trainer_alive)
    tree: dict[str, Any] = msgspec.to_builtins(
        {
            "status": status,
            "verdict": verdict_of(state, status, now),
            "alerts": state.alerts.open(),
            "ranks": state.ranks.as_dict(state.started),
            "damage": [str(text) for text in state.damage],
            "step": state.step,
            "steps_total": state.steps_total,
            "eta_seconds": state.eta_seconds(),
            "last": state.last,
            "evaluation": state.evaluations[-1].data if state.evaluations else None,
            "checkpoint": state.checkpoints[-1].data if state.checkpoints else None,
            "memory": state.memory or None,
            "samples_seen": state.samples_seen,
            "padding_share": state.padding_share(),
            "non_finite_losses": state.non_finite_losses,
            "host": state.host,
            "gpus": state.gpus,
            "xids": state.xids,
            "xid_source": state.xid_source or None,
            "stacks": state.stacks,
            "standing": state.standing or None,
            "evaluating": state.evaluating or None,
            "finished": state.finished or None,
        }
    )
    return tree
