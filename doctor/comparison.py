"""Two runs held against each other: what they were told, what came of it, and what they ran on. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from doctor.command_words import words_by_name
from doctor.meaningful import Weighed, weigh
from doctor.own_script import changed_lines
from doctor.proofs import Parting, ProofRecord, Trace, parting
from doctor.redact_secrets import without_secrets
from doctor.run_page import Page
from doctor.snapshots.diff import Diff, diff
from runner.command_plan import CommandPlan
from runner.events import number
from runner.plan import Plan
from runner.state import Curve, RunState
from runner.text import Text


@dataclass(frozen=True)
class Pair:
    """One thing said of both runs; None: it was not said."""

    name: str
    a: Any
    b: Any

    @property
    def change(self) -> float | None:
        """B minus A, where both are numbers."""
        one, other = number(self.a), number(self.b)
        return None if one is None or other is None else other - one


@dataclass(frozen=True)
class Comparison:
    """A is the reference; B is what is held against it."""

    a: Page
    b: Page
    settings: tuple[Pair, ...]
    """What differs in what they were told, by the profile's keys."""
    settings_why: tuple[tuple[str, Text], ...]
    """The runs whose plan could not be read, and why; empty: settings were compared."""
    results: tuple[Pair, ...]
    """Metrics and figures of both, equal or not."""
    environment: Diff | None
    environment_why: tuple[tuple[str, Text], ...] = ()
    same_loss_until: float | None = None
    """The last step up to which both recorded the same losses; None: they differ from the first on."""
    proof_steps: tuple[int, int] | None = None
    """How many steps the proof of each covers; None: not both have one."""
    script_changes: tuple[str, ...] = ()
    """What differs between the scripts that two commands ran, as a diff without context."""
    weighed: tuple[Weighed, ...] = ()
    """Differences with what chance alone makes of them."""
    proof_parting: Parting | None = None
    """Where proofs over as many steps part; None: they agree, or cannot be compared."""


def compare(a: Page, b: Page) -> Comparison:
    """Hold ``b`` against ``a``."""
    environment, why = _environment(a, b)
    settings, settings_why = _settings(a, b)
    return Comparison(
        a=a,
        b=b,
        settings=settings,
        settings_why=settings_why,
        results=tuple(_results(a.state, b.state)),
        environment=environment,
        environment_why=why,
        same_loss_until=equal_until(a.state.loss, b.state.loss),
        script_changes=changed_lines(a.script, b.script),
        weighed=tuple(weigh(a.state, b.state)),
        proof_steps=(a.proof.steps, b.proof.steps) if a.proof and b.proof else None,
        proof_parting=_parting(a.proof, b.proof),
    )


# -- settings ----------------------------------------------------------------------------------------------------
def _settings(a: Page, b: Page) -> tuple[tuple[Pair, ...], tuple[tuple[str, Text], ...]]:
    if a.plan is None or b.plan is None:
        return (), _unread(a, b, "plan.json")
    one, other = told(a.plan), told(b.plan)
    names = sorted({**one, **other}, key=lambda name: name.startswith("environment."))
    return tuple(
        Pair(name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)
    ), ()


def told(plan: Plan | CommandPlan) -> dict[str, Any]:
    """Return what a plan tells, flat: ``train.lr`` -> 3e-05, ``environment.OMP_NUM_THREADS`` -> ``8``."""
    if isinstance(plan, CommandPlan):
        tree: dict[str, Any] = {
            **words_by_name(without_secrets(plan.command)),
            "folder": plan.cwd,
            "retry": plan.retries,
        }
    else:
        tree = {**msgspec.to_builtins(plan.profile), "settings": msgspec.to_builtins(plan.settings)}
    return dict(_flat({**tree, "environment": plan.environment}))


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.dumps(value) if isinstance(value, list) else value


# -- results -----------------------------------------------------------------------------------------------------
def _results(a: RunState, b: RunState) -> Iterator[Pair]:
    yield Pair("steps", a.step, b.step)
    yield Pair("seconds", seconds_of(a), seconds_of(b))
    yield Pair("loss", last(a.loss), last(b.loss))
    yield Pair("eval_loss", last(a.eval_loss), last(b.eval_loss))
    ends = [state.finished.get("metrics") or {} for state in (a, b)]
    names = dict.fromkeys([*ends[0], *ends[1], *a.metrics, *b.metrics])
    for name in names:
        if name != "loss":
            yield Pair(name, *(_metric(state, end, name) for state, end in zip((a, b), ends, strict=True)))
    yield Pair("samples_per_s", median(a.samples_per_s), median(b.samples_per_s))
    yield Pair("tokens_per_s", median(a.tokens_per_s), median(b.tokens_per_s))
    yield Pair("padding_share", a.padding_share(), b.padding_share())
    yield Pair("non_finite_losses", a.non_finite_losses, b.non_finite_losses)


def _metric(state: RunState, end: dict[str, Any], name: str) -> float | None:
    """Return a metric at the end: as the run's last word has it, else its newest evaluation."""
    value = number(end.get(name))
    return value if value is not None else last(state.metrics[name]) if name in state.metrics else None


def last(curve: Curve) -> float | None:
    return curve.values[-1] if curve.values else None


def median(curve: Curve) -> float | None:
    return statistics.median(curve.values) if curve.values else None


def seconds_of(state: RunState) -> float | None:
    """Return how long a run took: by its own clock, else from its first event to its last."""
    seconds = number(state.finished.get("seconds"))
    if seconds is None and state.first_t is not None and state.last_t is not None:
        return state.last_t - state.first_t
    return seconds


def equal_until(a: Curve, b: Curve) -> float | None:
    """Return the last step up to which two curves are the same, step and value; None: not even the first point is."""
    step = None
    for one, other in zip(
        zip(a.steps, a.values, strict=True), zip(b.steps, b.values, strict=True), strict=False
    ):
        if one != other:
            break
        step = one[0]
    return step


# -- environment and proof ---------------------------------------------------------------------------------------
def _environment(a: Page, b: Page) -> tuple[Diff | None, tuple[tuple[str, Text], ...]]:
    if a.snapshot is None or b.snapshot is None:
        return None, _unread(a, b, "snapshot.json")
    return diff(a.snapshot, b.snapshot, a.name, b.name), ()


def _unread(a: Page, b: Page, file: str) -> tuple[tuple[str, Text], ...]:
    return tuple((page.name, page.unread[file]) for page in (a, b) if file in page.unread)


def _parting(a: ProofRecord | None, b: ProofRecord | None) -> Parting | None:
    if a is None or b is None or a.steps != b.steps:
        return None
    return parting(Trace(lines=a.lines), Trace(lines=b.lines))
