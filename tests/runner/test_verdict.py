"""Staged bottlenecks, told as the events a trainer and a sampler would write, and the verdict on each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runner.events import RunEvent
from runner.phases import phase_of, waits_for_work
from runner.state import RunState, fold
from runner.verdict import Verdict, verdict_of

LOADER = "torch/utils/data/dataloader.py"
GPU_IDLE = {"utilization_pct": 22.0, "power_w": 90.0, "power_limit_w": 450.0}
GPU_BUSY = {"utilization_pct": 98.0, "power_w": 430.0, "power_limit_w": 450.0}
GPU_SPINS = {"utilization_pct": 100.0, "power_w": 130.0, "power_limit_w": 450.0, "memory_activity_pct": 3.0}
STEP = {"data": 0.02, "forward": 0.35, "backward": 0.5, "optimizer": 0.1}
STARVED = {"data": 0.7, "forward": 0.1, "backward": 0.15, "optimizer": 0.04}


def told(
    device: str = "NVIDIA GeForce RTX 4090",
    split: dict[str, float] | None = None,
    gpu: dict[str, Any] | None = None,
    host: dict[str, Any] | None = None,
    phases: dict[str, float] | None = None,
    places: list[tuple[str, str, str, int]] | None = None,
    seconds: float = 60.0,
    step_s: float = 1.0,
    evaluation_s: float = 0.0,
    saving_s: float = 0.0,
    workers: bool = False,
    top: float = 0.3,
    world: int | None = None,
    exchange: float | None = None,
) -> RunState:
    """A minute of a run: a step a second, samples every second, stacks every five."""
    events: list[tuple[str, int | None, dict[str, Any], float]] = []
    if device:
        ranks = {} if world is None else {"world_size": world}
        events.append(("run-started", None, {"device": device, "steps_total": 1000, **ranks}, 0.0))
    now, step = 0.0, 0
    while now < seconds:
        now += step_s
        step += 1
        if split is not None:
            data = {
                "loss": 1.0,
                "samples": 8,
                "seconds": step_s,
                "split": {k: v * step_s for k, v in split.items()},
            }
            events.append(("step", step, data, now))
            if evaluation_s:
                now += evaluation_s
                events.append(("evaluation", step, {"loss": 1.0, "seconds": evaluation_s}, now))
            if saving_s:
                now += saving_s
                events.append(("checkpoint", step, {"bytes": 10, "seconds": saving_s}, now))
    for second in range(int(now)):
        if gpu is not None:
            events.append(("sample-gpu", None, {"gpus": [{"index": 0, **gpu}]}, second + 0.5))
        events.append(
            ("sample-host", None, {"cpu_pct": 120.0, "cpu_cores_usable": 8.0, **(host or {})}, second + 0.5)
        )
        if phases is not None and second % 5 == 4:
            looked = stacks(phases, places or [], workers, top)
            several = {} if exchange is None else {"distributed": True, "exchange": exchange}
            events.append(("sample-stacks", None, {**looked, **several}, second + 0.5))
    events.sort(key=lambda row: row[3])
    return fold(
        RunEvent(seq=0, t=1000 + at, kind=kind, step=number, data=data,
                 source="sampler" if kind.startswith("sample") else "trainer-0")
        for kind, number, data, at in events
    )  # fmt: skip


def stacks(
    phases: dict[str, float], places: list[tuple[str, str, str, int]], workers: bool, top: float
) -> dict[str, Any]:
    frames = [
        {
            "function": "work",
            "file": "train.py",
            "line": 9,
            "self_share": top,
            "total_share": 1.0,
            "process": "trainer",
        }
    ]
    if workers:
        frames.append(
            {
                "function": "load",
                "file": "data.py",
                "line": 3,
                "self_share": 1,
                "total_share": 1,
                "process": "worker 7",
            }
        )
    rows = [
        {"phase": p, "function": f, "file": file, "line": line, "share": 0.6} for p, f, file, line in places
    ]
    return {"samples": 50, "looks": 50, "errors": 0, "frames": frames, "phases": phases, "places": rows}


def verdict(state: RunState, status: str = "running", now: float = 1061.0) -> Verdict:
    return verdict_of(state, status, now)


READS = [("data", "__getitem__", "dataset.py", 31)]
COMPUTES = {"forward": 0.4, "backward": 0.4, "optimizer": 0.1, "other": 0.1}
FULL_CPU = {"cpu_pct": 770.0}

STAGED: dict[str, tuple[str, str, Callable[[], RunState]]] = {
    "slow disk, loader without workers": (
        "data", "dataset.py:31",
        lambda: told(split=STARVED, gpu=GPU_IDLE, phases={"data": 0.68, "forward": 0.3}, places=READS),
    ),
    "slow transform in the workers": (
        "data", "augment.py:12",
        lambda: told(split=STARVED, gpu=GPU_IDLE, phases={"data": 0.7, "forward": 0.2},
                     places=[("worker", "rotate", "augment.py", 12)], workers=True),
    ),
    "the loader's line counts, not the line that waits for it": (
        "data", "augment.py:12",
        lambda: told(split=STARVED, gpu=GPU_IDLE, phases={"data": 0.7, "forward": 0.2}, workers=True,
                     places=[("data", "main", "train.py", 99), ("worker", "rotate", "augment.py", 12)]),
    ),
    "data on a CPU machine": (
        "data", "dataset.py:31",
        lambda: told(device="cpu", split=STARVED, phases={"data": 0.7, "forward": 0.2}, places=READS),
    ),
    "starved, the stacks not permitted": ("data", "70 %", lambda: told(split=STARVED, gpu=GPU_IDLE)),
    "a script that tells no steps, starved": (
        "data", "dataset.py:31",
        lambda: told(device="", gpu=GPU_IDLE, phases={"data": 0.8, "other": 0.2}, places=READS),
    ),
    "tiny batches": ("launch", "22 %", lambda: told(split=STEP, gpu=GPU_IDLE, phases=COMPUTES)),
    "a card at full work": ("compute", "98 %", lambda: told(split=STEP, gpu=GPU_BUSY, phases=COMPUTES)),
    "a card at its memory's speed": (
        "memory", "81 %", lambda: told(split=STEP, gpu={**GPU_BUSY, "power_w": 250.0, "memory_activity_pct": 81.0}),
    ),
    "a card too hot": (
        "throttled", "hw-thermal",
        lambda: told(split=STEP, gpu={**GPU_BUSY, "throttle_reasons": ["hw-thermal", "power-cap"]}),
    ),
    "huge evaluation": ("evaluating", "75 %", lambda: told(split=STEP, gpu=GPU_BUSY, evaluation_s=3.0)),
    "a whole checkpoint each step, onto a network disk": (
        "saving", "55 %",
        lambda: told(split=STEP, gpu=GPU_IDLE, saving_s=1.2, phases={"saving": 0.55, "forward": 0.4}),
    ),
    "the slowest of eight ranks": (
        "ranks", "60 %", lambda: told(split=STEP, gpu=GPU_SPINS, phases={"ranks": 0.6, "forward": 0.3}),
    ),
    "a print and a progress bar in each step": (
        "logging", "50 %", lambda: told(split=STEP, gpu=GPU_IDLE, phases={"logging": 0.5, "forward": 0.4}),
    ),
    "a container with half a core": (
        "cpu-limit", "90 %",
        lambda: told(device="cpu", split=STARVED, host={"cpu_throttled_pct": 90.0, "cpu_cores_usable": 0.5, "cpu_pct": 50.0},
                     phases={"data": 0.7}),
    ),
    "pageable memory copied each step": (
        "copying", "40 %", lambda: told(split={"data": 0.02, "copy": 0.4, "forward": 0.25, "backward": 0.3}, gpu=GPU_IDLE),
    ),
    "a model computed on the CPU": ("compute", "96 %", lambda: told(device="cpu", split=STEP, host=FULL_CPU)),
    "steps of twenty seconds": (
        "data", "dataset.py:31",
        lambda: told(split=STARVED, gpu=GPU_IDLE, phases={"data": 0.68}, places=READS, step_s=20, seconds=300),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "make"), STAGED.values(), ids=STAGED)
def test_a_staged_bottleneck_is_named(kind: str, words: str, make: Callable[[], RunState]) -> None:
    found = verdict(make())
    assert found.kind == kind, found
    assert words in str(found.sentence)
    assert found.evidence
    assert found.advice is not None


UNCLEAR: dict[str, tuple[str, Callable[[], RunState]]] = {
    "nothing was seen": ("neither", lambda: told(device="", split=None)),
    "three steps so far": ("yet", lambda: told(split=STARVED, seconds=3)),
    "the clock says data, the stacks do not": (
        "disagree", lambda: told(split=STARVED, gpu=GPU_IDLE, phases={"data": 0.03, "forward": 0.9}),
    ),
    "the stacks say data, the clock does not": (
        "disagree", lambda: told(split=STEP, gpu=GPU_IDLE, phases={"data": 0.7, "forward": 0.1}),
    ),
    "waits for data beside a busy card": (
        "disagree", lambda: told(split=STARVED, gpu=GPU_BUSY, phases={"data": 0.7}),
    ),
    "the clock alone says data": ("neither stacks nor GPU", lambda: told(split=STARVED)),
    "busy card that draws little": (
        "power limit", lambda: told(split=STEP, gpu={**GPU_BUSY, "power_w": 110.0}, phases=COMPUTES),
    ),
    "idle card, a script that tells no steps": (
        "tells no step times", lambda: told(device="", gpu=GPU_IDLE, phases={"other": 0.9}),
    ),
    "a little of everything": (
        "nothing stands out",
        lambda: told(split={"data": 0.2, "forward": 0.2, "backward": 0.2, "optimizer": 0.1, "other": 0.3},
                     gpu={**GPU_BUSY, "utilization_pct": 70.0}),
    ),
    "one busy core of eight on a CPU machine": (
        "cores are in use", lambda: told(device="cpu", split=STEP, phases=COMPUTES),
    ),
    "a CPU limit beside a card that cannot be read": (
        "could not be read", lambda: told(split=STARVED, host={"cpu_throttled_pct": 90.0}, phases={"data": 0.7}),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "make"), UNCLEAR.values(), ids=UNCLEAR)
def test_what_is_not_plain_cannot_be_told(words: str, make: Callable[[], RunState]) -> None:
    found = verdict(make())
    assert found.kind == "unknown", found
    assert words in str(found.sentence)


def test_the_newest_minute_counts_while_it_runs_and_the_whole_when_it_is_over() -> None:
    state = told(split=STARVED, gpu=GPU_IDLE, phases={"data": 0.7}, places=READS, seconds=600)
    for second in range(601, 700):
        data = {"loss": 1.0, "seconds": 1.0, "split": STEP}
        state.add(RunEvent(seq=0, t=1000.0 + second, source="trainer-0", kind="step", step=second, data=data))
        gpu = {"gpus": [GPU_BUSY]}
        state.add(RunEvent(seq=0, t=1000.0 + second, source="sampler", kind="sample-gpu", data=gpu))
    assert verdict(state, "running", 1700.0).kind == "compute"
    assert verdict(state, "completed", 1700.0).kind == "data"


@pytest.mark.parametrize(
    ("stack", "phase"),
    [
        ([("main", "train.py", 3), ("__next__", LOADER, 733), ("__getitem__", "dataset.py", 9)], "data"),
        ([("main", "train.py", 3), ("evaluate", "train.py", 30), ("__next__", LOADER, 733)], "evaluation"),
        ([("_BaseDataLoaderIter.__next__", LOADER, 733), ("Texts.__getitem__", "dataset.py", 9)], "data"),
        ([("eval", "torch/nn/modules/module.py", 2500)], ""),
        ([("main", "train.py", 3), ("save", "torch/serialization.py", 849)], "saving"),
        ([("backward", "torch/_tensor.py", 1), ("_engine_run_backward", "torch/autograd/graph.py", 869)], "backward"),
        ([("save", "train.py", 3)], ""),
    ],
    ids=["a loader", "a loader of an evaluation", "a loader, named with its class", "module.eval() is no evaluation", "torch.save", "backward", "a user's save"],
)  # fmt: skip
def test_a_stack_is_named_by_what_it_is_busy_with(stack: list[tuple[str, str, int]], phase: str) -> None:
    assert phase_of(stack) == phase


def test_a_worker_without_an_order_waits() -> None:
    loop = ("_worker_loop", "torch/utils/data/_utils/worker.py", 275)
    assert waits_for_work(
        [loop, ("get", "multiprocessing/queues.py", 113), ("poll", "multiprocessing/connection.py", 257)]
    )
    assert not waits_for_work(
        [loop, ("fetch", "torch/utils/data/_utils/fetch.py", 54), ("load", "data.py", 3)]
    )
