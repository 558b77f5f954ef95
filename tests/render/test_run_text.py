"""A run in text: one line, one screen; what the machine named is shown and never obeyed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from doctor.render.layout import display_width
from doctor.render.run_text import event_words, figure, gpu_line, host_line, progress_line, screen
from doctor.render.sparkline import bar, sparkline
from runner.events import RunEvent
from runner.state import RunState, fold


def event(
    kind: str, step: int | None = None, source: str = "trainer-0", t: float = 0.0, **data: Any
) -> RunEvent:
    return RunEvent(seq=0, t=1000.0 + t, source=source, kind=kind, step=step, data=data)


def running(steps: int = 10, **last: Any) -> RunState:
    events = [event("run-started", device="cuda", precision="bf16", steps_total=20, model="bert")]
    for step in range(1, steps + 1):
        data = {"loss": 2.0 / step, "lr": 1e-4, "samples": 8, "seconds": 0.5} | (
            last if step == steps else {}
        )
        events.append(event("step", step, t=step, **data))
    return fold(events)


def test_the_progress_line_says_where_it_is_and_how_long_it_takes() -> None:
    line = progress_line(running(), "running", width=100)
    assert line == "step 10/20  50% █████░░░░░  loss 0.2  16 samples/s  5 s left"


def test_the_rate_is_that_of_all_ranks_together() -> None:
    events = [event("run-started", source=f"trainer-{rank}", steps_total=20, world_size=2) for rank in (0, 1)]
    events += [
        event("step", step, t=step, source=f"trainer-{rank}", loss=1.0, samples=8, seconds=0.5)
        for step in range(1, 11)
        for rank in (0, 1)
    ]
    state = fold(events)
    assert "  32 samples/s" in progress_line(state, "running", width=100)
    assert any(line.startswith("samples/s r0") for line in screen("r", state, "running", 1010.0))


def test_before_the_first_step_it_says_what_it_waits_for() -> None:
    assert "loading" in progress_line(RunState(), "starting")


@pytest.mark.parametrize("name", ["nan", "inf"])
def test_a_loss_that_is_not_finite_is_shown_as_that(name: str) -> None:
    state = running(loss=name)
    assert f"loss {name}" in progress_line(state, "running")
    assert "!" in "\n".join(screen("r", state, "running", 1010.0))
    assert any("1 loss was not finite" in line for line in screen("r", state, "running", 1010.0))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 12), (120, 40)])
def test_the_screen_keeps_to_its_size(width: int, height: int) -> None:
    state = running(30)
    stacks = [
        {
            "function": "读取数据" * 20,
            "file": "很长的路径/" * 20,
            "line": 1,
            "self_share": 0.5,
            "total_share": 1,
            "process": "trainer",
        }
        for _ in range(30)
    ]
    notes = [
        event("note", t=n, level="info", text={"msgid": "注意 {n}", "params": {"n": n}}) for n in range(30)
    ]
    gpus = [
        {"index": n, "name": "NVIDIA H100 80GB HBM3", "throttle_reasons": ["hw-thermal"]} for n in range(8)
    ]
    more = [
        event("sample-stacks", frames=stacks, source="sampler"),
        event("sample-gpu", gpus=gpus, source="sampler"),
        *notes,
    ]
    lines = screen("一个很长的名字" * 20, fold(more, state), "running", 1040.0, width, height)
    assert len(lines) <= height
    assert max(map(display_width, lines)) <= width


def test_escapes_in_names_are_shown_not_sent() -> None:
    state = running()
    evil = "\x1b]0;owned\x07"
    more = [
        event("note", level="info", text=evil),
        event("checkpoint", 3, path=f"checkpoints/{evil}", bytes=10),
        event("sample-stacks", frames=[{"function": evil, "file": evil, "process": evil}]),
        event("sample-gpu", gpus=[{"name": evil, "throttle_reasons": [evil]}]),
        RunEvent(seq=0, t=1.0, source="trainer-0", kind="evaluation", step=3, data={evil: 1.0}),
        event("run-finished", 3, outcome="failed", error=evil),
    ]
    text = "\n".join(screen(evil, fold(more, state), "failed", 1010.0, 200, 60))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "owned" in text


def test_a_value_that_could_not_be_read_is_a_question_mark() -> None:
    line = gpu_line({"index": 0, "name": "RTX 4090", "memory_used_bytes": 1 << 30})
    assert line == "GPU0 RTX 4090  ?  1.0 GB/?  ?  ?/?  ?"


def test_a_throttled_card_says_why_and_an_idle_one_does_not() -> None:
    assert gpu_line({"throttle_reasons": ["idle", "power-cap"]}).endswith("throttled: power-cap")
    assert "throttled" not in gpu_line({"throttle_reasons": ["idle"]})


def test_the_host_line_leaves_out_what_is_unknown_and_says_why() -> None:
    line = host_line(
        {
            "cpu_pct": 189.4,
            "rss_bytes": 2 << 30,
            "unread": {"disk_free_bytes": {"msgid": "the disk is gone", "params": {}}},
        }
    )
    assert line == "CPU 189%  RSS 2.0 GB  the disk is gone"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.53214, "0.5321"),
        (2e-5, "2.0e-05"),
        (0.0, "0"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (None, "-"),
        (12345.6, "1.235e+04"),
    ],
)
def test_figures(value: float | None, shown: str) -> None:
    assert figure(value) == shown


def test_an_event_of_a_kind_from_the_future_or_broken_words_do_not_break_it() -> None:
    assert event_words(event("note", text={"nonsense": 1})) == ""
    assert fold([event("something-new", 1, x=1)]).step == 0


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [
        pytest.param([0, 1, 2, 3, 4, 5, 6, 7], 8, "▁▂▃▄▅▆▇█", id="rising"),
        pytest.param([5, 5, 5], 8, "▁▁▁", id="flat"),
        pytest.param([1, math.nan, 2], 8, "▁!█", id="a NaN is a mark"),
        pytest.param([0, 0, 7, 7], 2, "▁█", id="more values than columns"),
        pytest.param([], 8, "", id="none"),
    ],
)
def test_sparklines(values: list[float], width: int, drawn: str) -> None:
    assert sparkline(values, width) == drawn


def test_without_utf8_all_is_ascii() -> None:
    assert bar(0.5, 4, unicode=False) == "##.."
    assert sparkline([1, 2, 3], 8, unicode=False).isascii()


def test_a_long_evaluation_is_no_stall_the_second_time() -> None:
    state = running()
    state.add(event("evaluation", 10, t=310.0, accuracy=0.5))  # after 300 s of silence
    assert state.status_at(1310.0 + 200, True) == "running"
    assert state.status_at(1310.0 + 901, True) == "stalled"
    state.add(event("run-started", t=9000.0, device="cpu"))  # a new start begins anew
    assert state.status_at(1000.0 + 9599, True) == "running"  # its first step may take long
    assert state.status_at(1000.0 + 9601, True) == "stalled"
    state.add(event("step", 11, t=9610.0, loss=1.0))
    assert state.status_at(1000.0 + 9611 + 3 * 610, True) == "stalled"
