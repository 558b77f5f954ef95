"""A run as it was: any moment of a short run is its fold up to there; of a long one it is found without reading it all."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.glance import RareIndex
from doctor.replay import Replay, cut
from runner.events import EventWriter, read_events
from runner.rundir import RunDir
from runner.state import fold, state_as_dict

BEGAN = 1_790_000_000.0
STEPS = 400


class Now:
    def __init__(self) -> None:
        self.t = BEGAN

    def __call__(self) -> float:
        return self.t


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A step a second, an evaluation every hundred, a sample of the host every other second."""
    run, now = RunDir(tmp_path_factory.mktemp("replay") / "run"), Now()
    run.make()
    trainer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0", now)
    sampler = EventWriter(run.events / "sampler.jsonl", "sampler", now)
    trainer.write("run-started", steps_total=STEPS)
    for step in range(1, STEPS + 1):
        now.t += 1
        trainer.write(
            "step", step, loss=4.0 / step, samples=8, seconds=1.0, split={"forward": 0.5, "data": 0.5}
        )
        if step % 100 == 0:
            trainer.write("evaluation", step, accuracy=step / 1000)
        if step % 2 == 0:
            sampler.write("sample-host", cpu_pct=float(step))
    now.t += 1
    trainer.write("run-finished", outcome="completed")
    return run


def folded_until(run: RunDir, at: float) -> dict[str, object]:
    events = [event for path in run.events.glob("*.jsonl") for event, _ in read_events(path) if event.t <= at]
    return state_as_dict(fold(sorted(events, key=lambda event: event.t)), at)


def test_the_span_is_from_the_first_to_the_last_event(run: RunDir) -> None:
    assert Replay(run).span() == (BEGAN, BEGAN + STEPS + 1)


@pytest.mark.parametrize("lengths", [(10, 10), (10, 60), (60, 10), (1, 200, 1), (7, 7, 7, 7)], ids=str)
def test_every_line_is_found_whatever_the_lengths(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    path, now = tmp_path / "trainer-0.jsonl", Now()
    writer = EventWriter(path, "trainer-0", now)
    for index, length in enumerate(lengths):
        now.t = BEGAN + index
        writer.write("note", text="x" * length)
        assert cut(path, BEGAN + index) == path.stat().st_size


@pytest.mark.parametrize("second", [0, 1, 99.5, 100, 101, 250, 399, 400, 401, 5000], ids=str)
def test_a_moment_is_what_had_been_written_by_then(run: RunDir, second: float) -> None:
    state = Replay(run).state_at(BEGAN + second)
    assert state_as_dict(state, BEGAN + second) == folded_until(run, BEGAN + second)
    assert not state.is_approximate


def test_going_forward_and_back_gives_the_same_as_going_there_at_once(run: RunDir) -> None:
    replay = Replay(run)
    for second in (10, 200, 201, 150, 399, 3):
        at = BEGAN + second
        assert state_as_dict(replay.state_at(at), at) == folded_until(run, at)


def test_before_the_first_event_there_is_nothing(run: RunDir) -> None:
    state = Replay(run).state_at(BEGAN - 1)
    assert state.step == 0 and state.started == {} and state.first_t is None


def test_of_a_long_run_the_moment_is_exact_and_the_way_there_thinned(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doctor import glance

    for name, size in (("HEAD_BYTES", 2000), ("TAIL_BYTES", 4000), ("POINTS", 20)):
        monkeypatch.setattr(glance, name, size)
    replay = Replay(run, whole_bytes=10_000)
    state = replay.state_at(BEGAN + 350)
    assert state.is_approximate
    assert (state.step, state.last["loss"], state.host["cpu_pct"]) == (350, 4.0 / 350, 350.0)
    assert [event.step for event in state.evaluations] == [100, 200, 300]
    assert state.loss.steps[0] == 1 and state.loss.steps[-1] == 350
    assert len(state.loss) < 350
    assert [event.step for event in replay.state_at(BEGAN + 250).evaluations] == [100, 200]
    assert replay.state_at(BEGAN + 5).step == 5  # so early that it is read whole


def test_the_cut_is_behind_the_last_line_of_its_time_in_any_file(tmp_path: Path) -> None:
    path, now = tmp_path / "trainer-0.jsonl", Now()
    writer = EventWriter(path, "trainer-0", now)
    ends = [0]
    for index in range(30):
        now.t = BEGAN + index
        writer.write("note", text="x" * (index * 37 % 400))
        ends.append(path.stat().st_size)
    for index in range(-1, 31):
        assert cut(path, BEGAN + index) == ends[min(max(index + 1, 0), 30)]


def test_a_torn_last_line_and_a_foreign_one_are_passed_over(tmp_path: Path) -> None:
    path, now = tmp_path / "trainer-0.jsonl", Now()
    EventWriter(path, "trainer-0", now).write("note", text="one")
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"not an event\n")
    now.t += 1
    EventWriter(path, "trainer-0", now).write("note", text="two")
    end = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"seq":3,"t":17900')
    assert cut(path, BEGAN) == whole
    assert cut(path, BEGAN + 9) == end


def test_a_run_that_grows_is_seen_to_its_new_end(tmp_path: Path) -> None:
    run, now = RunDir(tmp_path / "live"), Now()
    run.make()
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0", now)
    writer.write("step", 1, loss=1.0)
    replay = Replay(run)
    assert replay.state_at(BEGAN + 10).step == 1
    now.t += 5
    writer.write("step", 2, loss=0.5)
    assert replay.state_at(BEGAN + 10).step == 2
    assert replay.span() == (BEGAN, BEGAN + 5)


def test_a_run_without_a_word_has_no_span(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "silent")
    run.make()
    assert Replay(run).span() is None


def test_what_one_jump_had_no_time_to_find_the_next_one_finds(tmp_path: Path) -> None:
    path, now = tmp_path / "trainer-0.jsonl", Now()
    writer = EventWriter(path, "trainer-0", now)
    begins = []
    for step in range(1, 301):
        if step % 100 == 0:
            begins.append(path.stat().st_size)
            writer.write("evaluation", step, loss=1.0)
        writer.write("step", step, loss=1.0)
    size, index = path.stat().st_size, RareIndex(path)
    assert index.between(0, size, 0.0) == []
    assert index.between(0, begins[1], 60.0) == begins[:1], "searched no farther than was asked for"
    assert index.between(0, size, 60.0) == begins
    assert index.between(begins[1], size, 0.0) == begins[1:]
