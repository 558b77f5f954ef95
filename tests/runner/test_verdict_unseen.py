"""Staged bottlenecks with parameters drawn anew: how long a step is, how bad it is, how many cores. Stand-in data.

The events are made up as a run of that kind writes them (:func:`tests.runner.test_verdict.told`); the verdict sees neither
the scenario's name nor its numbers. ``tests/test_verdict_for_real.py`` has real trainings with a real sampler.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from runner.state import RunState
from tests.runner.test_verdict import GPU_BUSY, GPU_IDLE, GPU_SPINS, told, verdict

Draw = random.Random


def split(draw: Draw, **shares: float) -> dict[str, float]:
    """Return shares of a step: those given, and the rest for the passes in a drawn proportion."""
    left, forward = 1 - sum(shares.values()), draw.uniform(0.25, 0.45)
    return {**shares, "forward": left * forward, "backward": left * (0.9 - forward), "optimizer": left * 0.1}


def idle(draw: Draw) -> dict[str, object]:
    return {**GPU_IDLE, "utilization_pct": draw.uniform(4, 30)}


def slow_disk(draw: Draw) -> RunState:
    share, step_s = draw.uniform(0.5, 0.9), draw.uniform(0.2, 5)
    return told(split=split(draw, data=share), gpu=idle(draw), phases={"data": share, "forward": 0.9 - share}, step_s=step_s,
                places=[("data", "read", "reader.py", draw.randint(1, 900))])  # fmt: skip


def slow_transform(draw: Draw) -> RunState:
    share = draw.uniform(0.5, 0.9)
    return told(split=split(draw, data=share), gpu=idle(draw), phases={"data": share, "forward": 0.9 - share}, workers=True,
                places=[("worker", "augment", "images.py", draw.randint(1, 900))])  # fmt: skip


def no_workers(draw: Draw) -> RunState:
    share = draw.uniform(0.5, 0.85)
    return told(device="cpu", split=split(draw, data=share), phases={"data": share, "forward": 0.9 - share},
                host={"cpu_cores_usable": draw.choice([4.0, 16.0, 64.0]), "cpu_pct": draw.uniform(80, 120)})  # fmt: skip


def tiny_batch(draw: Draw) -> RunState:
    passes = {"forward": draw.uniform(0.3, 0.5), "backward": draw.uniform(0.2, 0.4), "optimizer": 0.1}
    return told(split=split(draw, data=0.01), gpu=idle(draw), phases=passes, step_s=draw.uniform(0.1, 0.4))


def per_step_prints(draw: Draw) -> RunState:
    share = draw.uniform(0.45, 0.8)
    return told(split=split(draw, data=0.02), gpu=idle(draw), phases={"logging": share, "forward": 0.9 - share})  # fmt: skip


def huge_evaluation(draw: Draw) -> RunState:
    return told(split=split(draw, data=0.03), gpu=GPU_BUSY, evaluation_s=draw.uniform(1.5, 8), step_s=draw.uniform(0.5, 1.5))  # fmt: skip


def throttled_cpu(draw: Draw) -> RunState:
    cores = draw.choice([0.5, 1.0, 2.0])
    host = {"cpu_throttled_pct": draw.uniform(60, 99), "cpu_cores_usable": cores, "cpu_pct": 100 * cores}
    return told(device="cpu", split=split(draw, data=draw.uniform(0.5, 0.8)), host=host, phases={"data": 0.6, "forward": 0.3})  # fmt: skip


def checkpoint_each_step(draw: Draw) -> RunState:
    share = draw.uniform(0.4, 0.7)
    return told(split=split(draw, data=0.02), gpu=idle(draw), saving_s=share / (1 - share), phases={"saving": share, "forward": 0.9 - share})  # fmt: skip


def slowest_rank(draw: Draw) -> RunState:
    share = draw.uniform(0.45, 0.8)
    return told(split=split(draw, data=0.02), gpu=GPU_SPINS, phases={"ranks": share, "forward": 0.9 - share})


def hot_card(draw: Draw) -> RunState:
    reason = draw.choice(["hw-thermal", "sw-thermal"])
    return told(split=split(draw, data=0.02), gpu={**GPU_BUSY, "throttle_reasons": [reason]}, step_s=draw.uniform(0.3, 3))  # fmt: skip


def pageable_copies(draw: Draw) -> RunState:
    return told(split=split(draw, data=0.02, copy=draw.uniform(0.35, 0.6)), gpu=idle(draw))


def busy_card(draw: Draw) -> RunState:
    passes = {"forward": 0.4, "backward": 0.4, "optimizer": 0.1}
    gpu = {**GPU_BUSY, "utilization_pct": draw.uniform(93, 100)}
    return told(split=split(draw, data=draw.uniform(0.0, 0.05)), gpu=gpu, phases=passes, step_s=draw.uniform(0.3, 4))  # fmt: skip


SCENARIOS: dict[str, tuple[str, Callable[[Draw], RunState]]] = {
    "slow disk": ("data", slow_disk),
    "slow transform": ("data", slow_transform),
    "zero workers": ("data", no_workers),
    "tiny batch": ("launch", tiny_batch),
    "per-step prints": ("logging", per_step_prints),
    "huge evaluation": ("evaluating", huge_evaluation),
    "throttled CPU": ("cpu-limit", throttled_cpu),
    "a checkpoint each step": ("saving", checkpoint_each_step),
    "the slowest rank": ("ranks", slowest_rank),
    "a hot card": ("throttled", hot_card),
    "pageable copies": ("copying", pageable_copies),
    "a card at full work": ("compute", busy_card),
}


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(("kind", "make"), SCENARIOS.values(), ids=SCENARIOS)
def test_a_bottleneck_is_named_whatever_its_parameters(
    kind: str, make: Callable[[Draw], RunState], number: int
) -> None:
    found = verdict(make(Draw(f"{kind}-{number}")), "completed", 2000.0)
    assert found.kind == kind, found
    assert found.advice is not None
