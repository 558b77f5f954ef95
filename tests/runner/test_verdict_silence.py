"""A trainer that tells nothing: what is called a hang, what is said to be something else, and what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from runner.events import RunEvent
from runner.state import FIRST_STEP_S, RunState
from runner.verdict import Verdict, verdict_of
from runner.verdict_silence import HUNG_AFTER_S, HUNG_AFTER_SLOW_S, STILL_AFTER_S
from tests.runner.test_verdict import GPU_IDLE, STEP, stacks, told

OWN = [("other", "work", "train.py", 9)]
IDLE = {"cpu_pct": 1.0, "blocked": 0, "paused": 0, "disk_read_bytes_per_s": 0, "disk_write_bytes_per_s": 0,
        "network_rx_bytes_per_s": 900, "network_tx_bytes_per_s": 30_000}  # fmt: skip


def watched(
    state: RunState,
    seconds: float,
    phases: dict[str, float] | None = None,
    top: float = 1.0,
    host: dict[str, Any] | None = None,
    gpu: dict[str, Any] | None = None,
    looked: dict[str, Any] | None = None,
    begin: float = 1010.0,
    with_stacks: bool = True,
    workers: bool = False,
    places: list[tuple[str, str, str, int]] | None = None,
    standing: dict[str, Any] | None = None,
) -> RunState:
    """Go on looking at a run from ``begin`` on for ``seconds``, in which it says nothing."""

    def add(at: float, kind: str, data: dict[str, Any]) -> None:
        state.add(RunEvent(seq=0, t=begin + at, source="sampler", kind=kind, data=data))

    for second in range(5, int(seconds), 5):
        add(second, "sample-host", {**IDLE, **(host or {})})
        if gpu is not None:
            add(second, "sample-gpu", {"gpus": [{"index": 0, **gpu}]})
        if with_stacks:
            seen = stacks(phases or {"other": 1.0}, OWN if places is None else places, workers, top)
            add(second, "sample-stacks", {**seen, **(looked or {})})
    if standing is not None:
        add(seconds, "standing", standing)
    return state


def silent(seconds: float = 200.0, **seen: Any) -> Verdict:
    """A run that spoke for ten seconds and has been silent since."""
    state = watched(told(split=STEP, seconds=10, gpu=GPU_IDLE), seconds, **seen)
    return verdict_of(state, "stalled", 1010.0 + seconds)


def top_at(function: str, file: str) -> dict[str, Any]:
    frame = {
        "function": function,
        "file": file,
        "line": 3,
        "self_share": 1.0,
        "total_share": 1.0,
        "process": "trainer",
    }
    return {"frames": [frame]}


HANGS: dict[str, tuple[str, dict[str, Any]]] = {
    "a lock that is never given back": ("work (train.py:9) all the time", {}),
    "a loader worker that stands": (
        "loader worker that stands at load (data.py:3)",
        {"phases": {"data": 1.0}, "workers": True, "places": [("worker", "load", "data.py", 3)]},
    ),
    "a read from a dead network disk": ("(state D)", {"seconds": 320.0, "host": {"blocked": 1}}),
    "a process that was stopped": ("SIGSTOP", {"seconds": 70.0, "host": {"paused": 3}}),
    "an answer that never comes": ("recv_into (socket.py:3)", {"seconds": 320.0, "looked": top_at("recv_into", "socket.py")}),
}  # fmt: skip


@pytest.mark.parametrize(("words", "seen"), HANGS.values(), ids=HANGS)
def test_a_hang_is_called_one_with_the_place(words: str, seen: dict[str, Any]) -> None:
    found = silent(**seen)
    assert found.kind == "hung", found
    assert words in str(found.sentence)
    assert found.advice is not None
    assert "in your code: " in str(found.evidence[0])


NO_HANGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "it computes": ("unknown", "computes", {"host": {"cpu_pct": 100.0}}),
    "it moves from place to place": ("unknown", "moves", {"top": 0.4}),
    "a long evaluation": ("evaluating", "evaluating", {"phases": {"evaluation": 1.0}}),
    "a slow save": ("saving", "saving", {"phases": {"saving": 1.0}, "host": {"blocked": 1}}),
    "a save in code of one's own": ("unknown", "kB/s", {"host": {"disk_write_bytes_per_s": 9e7}}),
    "a slow fsync of two minutes": ("unknown", "too short", {"host": {"blocked": 1}}),
    "a download": ("unknown", "the network moves", {"host": {"network_rx_bytes_per_s": 3e6}}),
    "a slow answer": ("unknown", "too short", {"looked": top_at("read", "ssl.py")}),
    "one step of the GPU's": ("unknown", "GPU is busy", {"gpu": {"utilization_pct": 97.0}}),
    "the other ranks": ("ranks", "other ranks", {"phases": {"ranks": 1.0}}),
    "a minute and a half": ("unknown", "too short", {"seconds": 90.0}),
    "nobody could look": ("unknown", "no stacks", {"with_stacks": False}),
    "the trainer's own word alone": (
        "unknown", "train.py:9 in work", {"with_stacks": False, "standing": {"place": "train.py:9 in work", "dumps": 2}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "seen"), NO_HANGS.values(), ids=NO_HANGS)
def test_what_may_go_on_is_not_called_a_hang(kind: str, words: str, seen: dict[str, Any]) -> None:
    found = silent(**seen)
    assert found.kind == kind, found
    assert words in str(found.sentence)


@pytest.mark.parametrize(("seconds", "kind"), [(HUNG_AFTER_S - 10, "unknown"), (HUNG_AFTER_S + 10, "hung")])
def test_a_hang_is_named_after_two_minutes(seconds: float, kind: str) -> None:
    assert silent(seconds).kind == kind


@pytest.mark.parametrize(
    ("seconds", "kind"), [(HUNG_AFTER_SLOW_S - 10, "unknown"), (HUNG_AFTER_SLOW_S + 10, "hung")]
)
def test_a_file_system_is_given_five(seconds: float, kind: str) -> None:
    assert silent(seconds, host={"blocked": 1}).kind == kind


@pytest.mark.parametrize(("paused", "is_said"), [(1, True), (0, False)], ids=["stopped", "only slow"])
def test_a_stopped_process_is_said_long_before_a_run_is_called_stalled(paused: int, is_said: bool) -> None:
    state = watched(told(split=STEP, seconds=10, gpu=GPU_IDLE), 40.0, host={"paused": paused})
    found = verdict_of(state, "running", 1050.0)
    assert (found.kind == "hung") is is_said, found
    assert ("SIGSTOP" in str(found.sentence)) is is_said


def test_what_the_kernel_says_of_each_process_is_evidence() -> None:
    waits = [{"pid": 7, "state": "S", "call": "read(/dev/pts/0)"}]
    found = silent(standing={"file": "stacks/silent-1.txt", "waits": waits})
    evidence = [str(text) for text in found.evidence]
    assert "process 7: read(/dev/pts/0), state S" in evidence
    assert "the whole stack: stacks/silent-1.txt" in evidence


def test_where_it_stood_is_forgotten_when_it_goes_on() -> None:
    state = watched(told(split=STEP, seconds=10), 70.0, standing={"file": "stacks/silent-1.txt"})
    assert state.standing
    state.add(RunEvent(seq=0, t=1090.0, source="trainer-0", kind="step", step=11, data={"loss": 1.0}))
    assert not state.standing


def test_a_first_step_may_take_ten_minutes() -> None:
    state = RunState()
    state.add(RunEvent(seq=0, t=1000.0, source="trainer-0", kind="run-started", data={"device": "cpu"}))
    assert state.status_at(1000.0 + FIRST_STEP_S - 1, True) == "running"
    assert state.status_at(1000.0 + FIRST_STEP_S + 1, True) == "stalled"


def test_an_evaluation_that_tells_how_far_it_is_is_not_silent() -> None:
    state = told(split=STEP, seconds=10)
    for at in range(15, 600, 15):
        data = {"done": at, "total": 1000}
        state.add(RunEvent(seq=0, t=1010.0 + at, source="trainer-0", kind="evaluating", data=data))
    assert state.status_at(1010.0 + 620, True) == "running"
    assert state.evaluating == {"done": 585, "total": 1000}


def without_steps(seconds: float, **seen: Any) -> Verdict:
    """A command that tells nothing of steps, looked at for ``seconds``."""
    state = RunState()
    state.add(RunEvent(seq=0, t=1000.0, source="log", kind="run-started", data={"command": "python t.py"}))
    watched(state, seconds, begin=1000.0, **seen)
    assert state.status_at(1000.0 + seconds, True) == "running"
    return verdict_of(state, "running", 1000.0 + seconds)


STILL: dict[str, tuple[str, dict[str, Any]]] = {
    "at one place for long": ("still", {"seconds": STILL_AFTER_S + 20}),
    "at one place for a while": ("unknown", {"seconds": STILL_AFTER_S - 20}),
    "in a read that does not return": ("hung", {"seconds": STILL_AFTER_S + 20, "host": {"blocked": 1}}),
    "stopped by hand": ("hung", {"seconds": 40, "host": {"paused": 1}}),
    "at one place, downloading": ("unknown", {"seconds": STILL_AFTER_S + 20, "host": {"network_rx_bytes_per_s": 1e6}}),
    "at work": ("unknown", {"seconds": STILL_AFTER_S + 20, "host": {"cpu_pct": 90.0}}),
    "here and there": ("unknown", {"seconds": STILL_AFTER_S + 20, "top": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "seen"), STILL.values(), ids=STILL)
def test_a_program_that_tells_no_steps_is_said_to_stand_and_not_to_hang(
    kind: str, seen: dict[str, Any]
) -> None:
    found = without_steps(**seen)
    assert found.kind == kind, found
    if kind == "still":
        assert "work (train.py:9)" in str(found.sentence)
        assert "on purpose" in str(found.sentence)


ASKS = {"waits": [{"pid": 7, "state": "S", "call": "read(/dev/pts/3)"}]}


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        ({}, "still"),
        ({"host": {"cpu_pct": 90.0}}, "unknown"),
        ({"standing": {"waits": [{"pid": 7, "state": "S", "call": "read(/data/rows.csv)"}]}}, "unknown"),
    ],
    ids=["a question", "a terminal read beside work", "a file is no keyboard"],
)
def test_a_question_on_a_terminal_is_told_soon(seen: dict[str, Any], kind: str) -> None:
    found = without_steps(**{"seconds": 40.0, "standing": ASKS, **seen})
    assert found.kind == kind, found
    assert ("keyboard" in str(found.sentence)) == (kind == "still")


def test_a_breakpoint_left_in_the_loop_is_no_hang() -> None:
    found = silent(standing=ASKS)
    assert found.kind == "still"
    assert "breakpoint" in str(found.advice)
