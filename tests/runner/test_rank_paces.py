"""Several trainer-N.jsonl are one run: the first rank's is the run's, the others are beside it, and the slow one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.render.run_page import as_html, as_markdown
from doctor.render.run_text import screen
from doctor.run_page import collect
from doctor.watching import RunWatcher, summarise
from runner.events import EventWriter, RunEvent
from runner.rundir import RunDir
from runner.state import RunState, fold, state_as_dict
from runner.windows import Windows


def train(
    *own_seconds: float, steps: int = 30, world: int | None = None, skip: dict[int, int] | None = None
) -> RunState:
    """Ranks that end each step of one second together; each with its own seconds of data and forward."""
    return fold(_events(own_seconds, steps, world, skip or {}))


def _events(
    own_seconds: tuple[float, ...], steps: int, world: int | None, skip: dict[int, int]
) -> list[RunEvent]:
    events = []
    for rank, own in enumerate(own_seconds):

        def event(t: float, kind: str, step: int | None = None, rank: int = rank, **data: Any) -> RunEvent:
            return RunEvent(seq=0, t=t, source=f"trainer-{rank}", kind=kind, step=step, data=data)

        events.append(
            event(0, "run-started", 0, steps_total=steps, device="cuda", world_size=world or len(own_seconds))
        )
        for step in range(1, steps + 1 - skip.get(rank, 0)):
            split = {"data": own / 2, "forward": own / 2, "backward": 1 - own}
            events.append(
                event(
                    step,
                    "step",
                    step,
                    loss=1.0 + rank,
                    samples=8,
                    tokens=100 * (rank + 1),
                    seconds=1.0,
                    split=split,
                )
            )
    return sorted(events, key=lambda one: one.t)


def test_the_run_is_the_first_ranks_and_rates_are_summed() -> None:
    alone, four = train(0.2, world=4), train(0.2, 0.2, 0.2, 0.2)
    assert (four.step, four.samples_seen, four.tokens_seen) == (30, 240, 3000)
    assert four.loss.values == alone.loss.values
    assert four.windows.whole.steps == alone.windows.whole.steps
    told = four.ranks.as_dict(four.started)
    assert told is not None
    assert (told["tokens_per_s"], told["samples_per_s"]) == (1000, 32)
    assert [row["rank"] for row in told["ranks"]] == [0, 1, 2, 3]
    assert (told["slowest"], told["behind"]) == (None, None)


def test_a_rank_that_did_not_tell_leaves_the_sum_untold() -> None:
    state = train(0.2, 0.2, world=3)
    told = state.ranks.as_dict(state.started)
    assert told is not None
    assert told["tokens_per_s"] is None


@pytest.mark.parametrize(
    ("own", "slowest"),
    [((0.2, 0.2, 0.6, 0.2), 2), ((0.5, 0.1), 0), ((0.2, 0.22, 0.21, 0.2), None), ((0.001, 0.002), None)],
    ids=["one-of-four", "one-of-two", "noise", "slow-in-little"],
)
def test_the_rank_the_others_wait_for_is_named(own: tuple[float, ...], slowest: int | None) -> None:
    found = train(*own).ranks.slowest()
    assert (None if found is None else found["rank"]) == slowest


def test_a_rank_that_fell_behind_is_named_and_one_that_has_ended_is_not() -> None:
    state = train(0.2, 0.2, 0.2, skip={1: 9})
    found = state.ranks.behind()
    assert found is not None
    assert (found["rank"], found["steps_behind"]) == (1, 9)
    state.add(RunEvent(seq=0, t=99, source="trainer-1", kind="run-finished", data={"outcome": "failed"}))
    assert state.ranks.behind() is None
    assert state.finished == {}


def test_a_note_of_any_rank_is_a_note_of_the_run() -> None:
    state = train(0.2, 0.2)
    state.add(RunEvent(seq=0, t=99, source="trainer-1", kind="note", data={"level": "warn", "text": "x"}))
    assert [event.data["text"] for event in state.notes] == ["x"]


def test_one_process_alone_has_no_ranks() -> None:
    state = train(0.2)
    assert state.ranks.as_dict(state.started) is None
    assert state_as_dict(state, 40.0)["ranks"] is None


def test_a_verdict_on_waiting_for_ranks_names_the_slow_one() -> None:
    state = train(0.05, 0.05, 0.5)
    assert isinstance(state.windows, Windows)
    for t in range(31, 91):
        state.add(RunEvent(seq=0, t=t, source="sampler", kind="sample-stacks",
                           data={"looks": 50, "samples": 50, "phases": {"ranks": 0.8}, "frames": [{"function": "wait", "file": "x.py", "process": "trainer"}]}))  # fmt: skip
        state.add(
            RunEvent(seq=0, t=t, source="trainer-0", kind="step", step=t, data={"loss": 1.0, "seconds": 1.0})
        )
    verdict = state_as_dict(state, 91.0)["verdict"]
    assert verdict["kind"] == "ranks"
    assert verdict["evidence"][-1]["params"] == {
        "rank": 2,
        "parts": "data, copy, forward",
        "own": 0.5,
        "middle": 0.05,
    }


def sharded_step(rank: int, data: float, forward: float) -> RunEvent:
    split = {"data": data, "forward": forward, "backward": 0.5}
    source = f"trainer-{rank}"
    return RunEvent(seq=0, t=9.0, source=source, kind="step", step=1, data={"seconds": 1.0, "split": split})


def test_of_a_model_cut_into_parts_the_forward_pass_is_nobodys_own() -> None:
    """The fast ranks wait in it for the slow one's data, so together both take as long."""
    state = fold(
        [
            RunEvent(seq=0, t=rank, source=f"trainer-{rank}", kind="run-started", step=0, data={"world_size": 2, "strategy": "fsdp"})
            for rank in (0, 1)
        ]
    )  # fmt: skip
    for event in (sharded_step(0, 0.05, 0.45), sharded_step(1, 0.4, 0.1)) * 3:
        state.add(event)
    found = state.ranks.slowest()
    assert found is not None and (found["rank"], found["own_parts"]) == (1, ["data", "copy"])


def written(folder: Path, *own_seconds: float) -> RunWatcher:
    """Return what watches a run directory with a file of events for each rank."""
    run = RunDir(folder / "run")
    run.make()
    now = [0.0]
    for rank in range(len(own_seconds)):
        writer = EventWriter(run.events / f"trainer-{rank}.jsonl", f"trainer-{rank}", lambda: now[0])
        for event in _events(own_seconds, 20, len(own_seconds), {}):
            if event.source == writer.source:
                now[0] = event.t + 1.7e9
                writer.write(event.kind, event.step, **event.data)
        writer.close()
    return RunWatcher(run, clock=lambda: 1.7e9 + 21)


def test_watch_reads_the_ranks_of_a_run_directory(tmp_path: Path) -> None:
    watcher = written(tmp_path, 0.1, 0.1, 0.4)
    lines = screen("run", watcher.poll(), "running", 1.7e9 + 21, width=200)
    assert any(
        "3 ranks · 600 tokens/s · 24 samples/s" in line and "rank 2 is the slowest" in line for line in lines
    )


def test_the_report_has_a_row_a_rank_and_names_the_slow_one(tmp_path: Path) -> None:
    watcher = written(tmp_path, 0.1, 0.1, 0.4)
    watcher.poll()
    (watcher.run.plan).write_text("{}")
    markdown, html = (as_form(collect(watcher)) for as_form in (as_markdown, as_html))
    for page in (markdown, html):
        assert "3 ranks" in page and "rank 2 is the slowest: what it does by itself" in page
    assert [line.split("|")[1].strip() for line in markdown.splitlines() if "its own work" in line] == [
        "0",
        "1",
        "2",
    ]
    assert summarise(watcher.run).processes == 3
