"""TensorBoard's files as curves: our own reading against TensorBoard's, torn and damaged files, a folder of several runs."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from doctor.process_watch import ProcessWatcher
from doctor.tensorboard_file import Damaged, Scalars, read_scalars
from doctor.tensorboard_follow import TensorboardFollower, event_files
from runner.state import RunState, fold

needs_tensorboard = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("tensorboard") is None, reason="TensorBoard is not installed"
)


def written(folder: Path, rows: list[tuple[int, dict[str, float]]], begun: float = 1000.0) -> Path:
    """Write scalars with TensorBoard's own writer, an event a scalar as torch's SummaryWriter does."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step, values in rows:
        for tag, value in values.items():
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(Event(wall_time=begun + step, step=step, summary=summary))
    writer.close()
    (path,) = folder.glob("*tfevents*")
    return path


ROWS = [
    (step, {"train/loss": 2.0 / step, "train/learning_rate": 1e-4 / step, "train/grad_norm": 1.0})
    for step in range(1, 51)
]


@needs_tensorboard
def test_our_reading_is_tensorboard_s_own(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = [*ROWS, (2**40, {"eval/loss": float("nan"), "x": float("-inf"), "tag with 中文": -0.0})]
    path = written(tmp_path, rows)
    theirs = EventAccumulator(str(path), size_guidance={"scalars": 0})
    theirs.Reload()
    expected = {
        tag: [(event.wall_time, event.step, struct.pack("<f", event.value)) for event in theirs.Scalars(tag)]
        for tag in theirs.Tags()["scalars"]
    }
    found, used = read_scalars(path.read_bytes())
    ours: dict[str, list[tuple[float, int, bytes]]] = {}
    for event in found:
        for tag, value in event.values.items():
            ours.setdefault(tag, []).append((event.wall_time, event.step, struct.pack("<f", value)))
    assert ours == expected
    assert used == path.stat().st_size


@needs_tensorboard
@pytest.mark.parametrize("kind", ["float", "double"])
def test_scalars_kept_as_tensors_are_read_as_newer_writers_write_them(tmp_path: Path, kind: str) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    tensor = (
        TensorProto(dtype=1, float_val=[0.25])
        if kind == "float"
        else TensorProto(dtype=2, tensor_content=struct.pack("<d", 0.25))
    )
    wide = TensorProto(dtype=1, float_val=[1.0, 2.0])
    writer = EventFileWriter(str(tmp_path))
    values = [Summary.Value(tag="loss", tensor=tensor), Summary.Value(tag="histogram", tensor=wide)]
    writer.add_event(Event(wall_time=5.0, step=7, summary=Summary(value=values)))
    writer.close()
    (path,) = tmp_path.glob("*tfevents*")
    assert read_scalars(path.read_bytes())[0] == [Scalars(5.0, 7, {"loss": 0.25})]


@needs_tensorboard
def test_a_file_cut_anywhere_gives_what_is_whole_and_goes_on_when_the_rest_comes(tmp_path: Path) -> None:
    content = written(tmp_path, ROWS[:3]).read_bytes()
    whole = read_scalars(content)[0]
    for cut in range(len(content)):
        head, used = read_scalars(content[:cut])
        tail, _ = read_scalars(content[used:])
        assert head + tail == whole


@needs_tensorboard
@pytest.mark.parametrize(
    "content", [b"step=1 loss=2\n" * 9, b"\xff" * 64, b"\0" * 64], ids=["a text", "ones", "zeros"]
)
def test_what_is_no_event_file_is_called_damaged(content: bytes) -> None:
    with pytest.raises(Damaged):
        read_scalars(content)


@needs_tensorboard
def test_curves_pace_and_times_come_from_the_file(tmp_path: Path) -> None:
    written(
        tmp_path / "logs" / "version_0",
        [*ROWS, (50, {"eval/loss": 0.5, "eval/accuracy": 0.9, "eval/runtime": 3.0})],
    )
    follower = TensorboardFollower(tmp_path / "logs")
    state = fold(follower.read())
    fold(follower.read(), state)  # the newest step waits for a look at which nothing more came
    assert (state.loss.steps[-1], len(state.loss)) == (50, 50)
    assert state.loss.values[0] == 2.0
    assert state.lr.values[0] == pytest.approx(1e-4)
    assert state.last["grad_norm"] == 1.0, "scalars of one step are one event"
    assert state.metrics["accuracy"].values == [pytest.approx(0.9)]
    assert "runtime" not in state.metrics
    assert state.log_pace == [] or state.log_pace[-1] == 1.0
    assert (state.first_t, state.last_t) == (1001.0, 1050.0)


@needs_tensorboard
def test_what_is_written_while_we_look_comes_once(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    content, state = path.read_bytes(), RunState()
    path.write_bytes(b"")
    follower = TensorboardFollower(path)
    for end in range(0, len(content) + 777, 777):
        path.write_bytes(content[:end])
        fold(follower.read(), state)
    fold(follower.read(), state)
    assert state.loss.steps == [float(step) for step in range(1, 51)]


@needs_tensorboard
def test_a_file_damaged_in_its_middle_is_read_up_to_there_and_said(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
    path.write_bytes(content)
    follower = TensorboardFollower(path)
    state = fold(follower.read())
    for _ in range(3):
        fold(follower.read(), state)
    assert 10 < len(state.loss) < 40
    assert [str(note.data["text"]).partition(" behind ")[0] for note in state.notes] == [
        f"{path.name} is damaged"
    ]


@needs_tensorboard
def test_of_a_folder_with_several_runs_the_newest_is_read(tmp_path: Path) -> None:
    old = written(tmp_path / "a", [(1, {"loss": 1.0}), (2, {"loss": 1.0})])
    os.utime(old, (1, 1))
    written(tmp_path / "b", [(7, {"Loss/train": 7.0}), (8, {"Loss/train": 8.0}), (8, {"Loss/val": 9.0})])
    follower = TensorboardFollower(tmp_path)
    state = fold([*follower.read(), *follower.read()])
    assert state.loss.values == [7.0, 8.0]
    assert state.eval_loss.values == [9.0]


def test_a_folder_without_event_files_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="tfevents"):
        TensorboardFollower(tmp_path)
    assert event_files(tmp_path) == []


WRITES = """
import sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(sys.argv[1], flush_secs=0.2)
for step in range(1, 300):
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[Summary.Value(tag="loss", simple_value=1 / step)])))
    writer.flush()
    time.sleep(0.1)
"""


@needs_tensorboard
def test_a_job_that_only_writes_to_tensorboard_shows_curves_and_pace(tmp_path: Path) -> None:
    job = subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path)])
    try:
        wait_for(lambda: any(path.stat().st_size > 500 for path in tmp_path.glob("*tfevents*")))
        watcher = ProcessWatcher(job.pid, tmp_path)
        wait_for(lambda: len(watcher.poll().loss) >= 5)
        watcher.close()
    finally:
        job.kill()
        job.wait()
    assert watcher.state.loss.values[:2] == [1.0, 0.5]
    assert watcher.state.log_pace, "it was written while we looked"


def wait_for(what: Any, until: float = 60.0) -> None:
    end = time.monotonic() + until
    while not what() and time.monotonic() < end:
        time.sleep(0.1)
    assert what()
