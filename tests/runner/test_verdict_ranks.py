"""Waiting for other ranks: told when a second witness speaks of the exchange, and not from a busy card that draws little alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.stacks import Frame, Stack, where_time_goes
from runner.events import read_events
from runner.phases import phase_of
from runner.recording import Recorder
from runner.state import RunState
from tests.runner.test_verdict import COMPUTES, GPU_BUSY, GPU_IDLE, GPU_SPINS, STARVED, STEP, told, verdict

LONG_BACKWARD = {"data": 0.02, "forward": 0.08, "backward": 0.8, "optimizer": 0.05}
IN_BACKWARD = {"backward": 0.8, "forward": 0.1, "optimizer": 0.05}
SLEEPS, WORKS = {"cpu_pct": 25.0}, {"cpu_pct": 110.0}

STAGED: dict[str, tuple[str, Callable[[], RunState]]] = {
    "the main thread stands in a collective": (
        "60 % of looks", lambda: told(split=STEP, gpu=GPU_SPINS, phases={"ranks": 0.6, "forward": 0.3}),
    ),
    "a barrier before each step, the card idle": (
        "55 % of looks", lambda: told(split={"other": 0.6, "forward": 0.2, "backward": 0.2}, gpu=GPU_IDLE, phases={"ranks": 0.55, "forward": 0.3}),
    ),
    "hooks of the backward pass in a collective, the card spins": (
        "draws only 29 %", lambda: told(split=STEP, gpu=GPU_SPINS, phases=COMPUTES, exchange=0.35),
    ),
    "eight ranks, all-reduce inside backward": (
        "draws only 29 %", lambda: told(split=LONG_BACKWARD, gpu=GPU_SPINS, phases=IN_BACKWARD, world=8),
    ),
    "data parallel seen in the stacks alone, all-reduce inside backward": (
        "draws only 29 %", lambda: told(split=LONG_BACKWARD, gpu=GPU_SPINS, phases=IN_BACKWARD, exchange=0.0),
    ),
    "two ranks on CPUs, gloo asleep in backward": (
        "0.2 cores", lambda: told(device="cpu", split=LONG_BACKWARD, host=SLEEPS, phases=IN_BACKWARD, world=2),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "make"), STAGED.values(), ids=STAGED)
def test_a_wait_for_other_ranks_is_named_with_its_witnesses(words: str, make: Callable[[], RunState]) -> None:
    found = verdict(make())
    assert found.kind == "ranks", found
    assert words in str(found.sentence)
    assert found.evidence
    assert "slowest rank" in str(found.advice)


UNCLEAR: dict[str, tuple[str, Callable[[], RunState]]] = {
    "stacks see a collective beside a card at full power": (
        "disagree", lambda: told(split=STEP, gpu=GPU_BUSY, phases={"ranks": 0.6, "forward": 0.3}, world=8),
    ),
    "stacks see a collective where the clock sees data": (
        "disagree", lambda: told(split=STARVED, gpu=GPU_IDLE, phases={"ranks": 0.6, "data": 0.2}, world=8),
    ),
    "a card that spins, one process": (
        "power limit", lambda: told(split=LONG_BACKWARD, gpu=GPU_SPINS, phases=IN_BACKWARD),
    ),
    "a card that spins, eight ranks, an ordinary backward pass": (
        "power limit", lambda: told(split=STEP, gpu=GPU_SPINS, phases=COMPUTES, world=8),
    ),
    "a long backward pass of eight ranks, the card could not be read": (
        "nothing stands out", lambda: told(split=LONG_BACKWARD, phases=IN_BACKWARD, world=8),
    ),
    "collectives now and then beside an idle card": (
        "may be a wait for other ranks", lambda: told(split=STEP, gpu=GPU_IDLE, phases=COMPUTES, exchange=0.25),
    ),
    "two ranks on CPUs, a long backward pass that computes": (
        "cores are in use", lambda: told(device="cpu", split=LONG_BACKWARD, host=WORKS, phases=IN_BACKWARD, world=2),
    ),
    "a card that spins and moves much memory, eight ranks": (
        "cannot tell", lambda: told(split={"data": 0.45, "other": 0.3, "forward": 0.1, "backward": 0.15}, gpu={**GPU_SPINS, "memory_activity_pct": 80.0}, world=8),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "make"), UNCLEAR.values(), ids=UNCLEAR)
def test_what_may_be_something_else_is_not_called_a_wait(words: str, make: Callable[[], RunState]) -> None:
    found = verdict(make())
    assert found.kind == "unknown", found
    assert words in str(found.sentence)


C10D, DDP = "torch/distributed/distributed_c10d.py", "torch/nn/parallel/distributed.py"
FSDP = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"


@pytest.mark.parametrize(
    ("stack", "phase"),
    [
        ([("main", "train.py", 3), ("backward", "torch/_tensor.py", 1), ("_engine_run_backward", "torch/autograd/graph.py", 869),
          ("hook", "train.py", 9), ("wrapper", "torch/distributed/c10d_logger.py", 83), ("all_reduce", C10D, 2800)], "ranks"),
        ([("main", "train.py", 3), ("_engine_run_backward", "torch/autograd/graph.py", 869), ("wait_for_unshard", FSDP, 417)], "ranks"),
        ([("main", "train.py", 3), ("forward", DDP, 1661), ("_call_impl", "torch/nn/modules/module.py", 1775)], "forward"),
        ([("reduce", "train.py", 3)], ""),
        ([("main", "torch/distributed/run.py", 900), ("launch_agent", "torch/distributed/launcher/api.py", 250)], ""),
    ],
    ids=["a hook of backward", "FSDP in backward", "DDP computes", "a user's reduce", "torchrun itself"],
)  # fmt: skip
def test_collectives_are_known_by_where_they_stand(stack: list[tuple[str, str, int]], phase: str) -> None:
    assert phase_of(stack) == phase


def looked(*stacks: tuple[int, list[tuple[str, str]], int]) -> dict[str, object]:
    """Fold stacks of the trainer (pid 10): thread, frames as (function, file), looks."""
    return where_time_goes([
        Stack((10,), thread, "", tuple(Frame(function, file, 1) for function, file in frames), count)
        for thread, frames, count in stacks
    ])  # fmt: skip


def test_a_collective_of_autograd_s_own_thread_counts_as_exchange_not_as_the_main_thread_s_phase() -> None:
    backward = [("main", "train.py"), ("_engine_run_backward", "torch/autograd/graph.py")]
    told_ = looked(
        (10, backward, 40),
        (
            11,
            [
                ("post_backward", FSDP),
                ("foreach_reduce", "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"),
            ],
            14,
        ),
    )
    assert (told_["distributed"], told_["exchange"]) == (True, 0.35)
    assert told_["phases"] == {"backward": 1.0}


def test_a_process_that_trains_alone_says_nothing_of_ranks() -> None:
    assert "distributed" not in looked(
        (10, [("main", "train.py"), ("_call_impl", "torch/nn/modules/module.py")], 40)
    )


@pytest.mark.parametrize(("told_", "world"), [("8", 8), ("1", None), ("", None), ("many", None)])
def test_a_recorder_says_how_many_train_together(
    told_: str, world: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", told_)
    (tmp_path / "events").mkdir()
    recorder = Recorder(str(tmp_path))
    recorder.begin(device="cuda")
    ((event, _),) = read_events(next((tmp_path / "events").glob("*.jsonl")))
    assert event.data.get("world_size") == world
