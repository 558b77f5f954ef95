"""Whatever stands in an events file, reading the run does not fail: a run directory may be damaged, or another's."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.events import KINDS, RunEvent, amount, number, read_events
from runner.state import RunState, fold, state_as_dict

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.sampled_from(["nan", "inf", "-inf", 10**400, -1, 1 << 63]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
KEYS = st.sampled_from([
    "loss", "lr", "grad_norm", "samples", "tokens", "padded_tokens", "epoch", "seconds", "split", "non_finite",
    "steps_total", "resumed_from_step", "outcome", "exit_code", "level", "text", "path", "bytes", "gpus", "frames",
    "looks", "phases", "places", "cpu_pct", "cpu_cores_usable", "disk_free_bytes", "accuracy", "state", "command",
    "memory_used_bytes", "memory_total_bytes", "throttle_reasons", "unread", "utilization_pct", "power_w", "why",
        "temperature_c", "temperature_slowdown_c", "function", "file", "line", "phase", "share", "self_share", "process",
])  # fmt: skip
ODD: st.SearchStrategy[Any] = st.sampled_from(
    ["nan", "inf", "-inf", 10**400, -1, 0, 1, 90, 1e308, "x", None, True, [], {}, [1], ["hw-thermal"]]
)
PARTS = st.dictionaries(KEYS, ODD | JSON, max_size=8)
DATA = st.dictionaries(
    KEYS | st.text(max_size=5), ODD | JSON | PARTS | st.lists(PARTS, max_size=2), max_size=8
)
EVENTS = st.builds(
    RunEvent,
    seq=st.integers(0, 9),
    t=st.floats(-1e12, 1e12),
    source=st.sampled_from(["trainer-0", "trainer-1", "log", "sampler", "", "x"]),
    kind=st.sampled_from(KINDS) | st.text(max_size=6),
    step=st.none() | st.integers(),
    data=DATA,
)


def _sample(kind: str, **data: Any) -> list[RunEvent]:
    """Return one look again and again: an alert opens only when it lasts."""
    return [RunEvent(seq=n, t=float(n), source="sampler", kind=kind, data=data) for n in range(20)]


def read(state: RunState) -> dict[str, Any]:
    """Ask everything that a face asks, at some later moment, and return it as JSON would carry it."""
    for alive in (None, True, False):
        state.status_at(1e6, alive)
    tree = state_as_dict(state, 1e6)
    assert isinstance(tree["status"], str)
    share = state.padding_share()
    assert share is None or 0 <= share <= 1
    assert state.step >= 0 and (state.steps_total is None or state.steps_total >= 0)
    return tree


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, max_size=12).map(lambda events: [event for event in events for _ in range(6)]))
@example([RunEvent(seq=0, t=1.0, source="trainer-0", kind="step", step=1, data={"split": []})])
@example(
    [RunEvent(seq=0, t=1.0, source="trainer-0", kind="step", step=1, data={"samples": "inf", "seconds": 1})]
)
@example([RunEvent(seq=0, t=1.0, source="trainer-0", kind="step", data={"tokens": 9, "padded_tokens": 4})])
@example(
    [RunEvent(seq=0, t=1.0, source="trainer-0", kind="step", data={"loss": 10**400, "steps_total": "x"})]
)
@example(
    [
        RunEvent(
            seq=0,
            t=1.0,
            source="sampler",
            kind="sample-stacks",
            data={"frames": [{}], "looks": 1, "places": [{}]},
        )
    ]
)
@example(_sample("sample-gpu", gpus=[{"memory_used_bytes": "inf", "memory_total_bytes": 5}]))
@example(_sample("sample-gpu", gpus=[{"temperature_c": "inf", "temperature_slowdown_c": 90}]))
@example(_sample("sample-gpu", gpus=[{"utilization_pct": "inf", "power_w": "inf", "power_limit_w": 1}]))
@example(_sample("sample-host", disk_free_bytes="-inf", cpu_pct="inf"))
def test_any_events_fold_and_are_read(events: list[RunEvent]) -> None:
    read(fold(events))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(lines=st.lists(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())
                      | EVENTS.map(lambda event: __import__("msgspec").json.encode(event)), max_size=10))  # fmt: skip
def test_any_lines_are_read_to_the_last_newline(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "trainer-0.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b'{"seq": 7, "t"')
    found = list(read_events(path))
    read(fold(event for event, _ in found))
    assert all(offset <= path.stat().st_size for _, offset in found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3.0), (0, 0.0), ("inf", None), ("nan", None), (-1, None), (True, None), ([], None), ({}, None),
     (10**400, None), (1 << 60, None), ("3", None)],
)  # fmt: skip
def test_an_amount_is_a_finite_number_from_nought_up(value: Any, expected: float | None) -> None:
    assert amount(value) == expected


def test_a_number_may_be_named_and_an_integer_beyond_floats_is_none() -> None:
    assert math.isinf(number("inf") or 0.0) and number(10**400) is None


def test_padding_counts_only_steps_that_told_both(tmp_path: Path) -> None:
    def step(number: int, **data: Any) -> RunEvent:
        return RunEvent(seq=number, t=float(number), source="trainer-0", kind="step", step=number, data=data)

    state = fold(
        [step(1, tokens=30, padded_tokens=40), step(2, tokens=500), step(3, tokens=9, padded_tokens=4)]
    )
    assert state.padding_share() == 0.25 and state.tokens_seen == 539
