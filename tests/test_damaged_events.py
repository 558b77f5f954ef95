"""Events files as crashes, other hosts and later versions leave them: read in bounded memory, nothing sound lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.watching import RunWatcher, summarise
from runner.events import LONGEST_LINE, EventFollower, EventWriter, RunEvent, read_events
from runner.rundir import RunDir
from tests.commands_run import doctor


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.make()
    run.plan.write_text("{}")
    return run


def line(seq: int, kind: str = "step", **data: object) -> bytes:
    event = RunEvent(seq=seq, t=1000.0 + seq, source="trainer-0", kind=kind, step=seq, data=dict(data))
    import msgspec

    return msgspec.json.encode(event) + b"\n"


def sequence(path: Path) -> list[int]:
    return [event.seq for event, _ in read_events(path)]


@pytest.mark.parametrize(
    ("middle", "kept"),
    [
        (b"\0" * 5000 + b"\n", [1, 2, 3]),
        (b'{"seq":9,"t":1, "kin\n', [1, 2, 3]),
        (b"x" * (LONGEST_LINE + 10) + b"\n", [1, 2, 3]),
        (b"x" * (2 * LONGEST_LINE) + b"\n", [1, 2, 3]),
        (b"\xff\xfe\x00[1,2]\n[]\nnull\n", [1, 2, 3]),
        (line(8, "from-the-future", shape=[{"a": 1}]), [1, 2, 8, 3]),
    ],
    ids=["NUL bytes of a crash", "torn and ended", "a line without end", "twice that", "foreign bytes", "a kind of a later version"],
)  # fmt: skip
def test_what_is_no_event_costs_only_itself(tmp_path: Path, middle: bytes, kept: list[int]) -> None:
    path = tmp_path / "trainer-0.jsonl"
    path.write_bytes(line(1) + line(2) + middle + line(3) + b'{"seq":4')
    assert sequence(path) == kept


def test_a_torn_last_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "trainer-0.jsonl"
    whole = line(1)
    path.write_bytes(whole[:20])
    follower = EventFollower(tmp_path)
    assert follower.read_new() == []
    path.write_bytes(whole)
    assert [event.seq for event in follower.read_new()] == [1]


def test_ten_gigabytes_of_hole_are_passed_over_in_bounded_memory(run: RunDir) -> None:
    path = run.events / "trainer-0.jsonl"
    path.write_bytes(line(1, "run-started") + line(2, loss=1.0))
    os.truncate(path, 10 << 30)
    with open(path, "ab") as file:
        file.write(b"\n" + line(3, loss=0.5))
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert sequence(path) == [1, 2, 3]
    assert [event.seq for event in EventFollower(run.events).read_new()] == [1, 2, 3]
    assert summarise(RunDir(run.path)).step == 3
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 64 << 10  # KiB
    shown = doctor("watch", str(run.path), "--once")
    assert shown.returncode == 0, shown.stderr
    assert "0.5" in shown.stdout


def test_a_writer_goes_on_behind_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "sampler.jsonl"
    path.write_bytes(line(1))
    os.truncate(path, 1 << 30)
    writer = EventWriter(path, "sampler")
    writer.write("sample-host", cpu_pct=1.0)
    writer.close()
    assert sequence(path) == [1, 2]


def test_two_samplers_files_are_read_together(run: RunDir) -> None:
    (run.events / "sampler.jsonl").write_bytes(line(1, "sample-host", cpu_pct=5.0))
    (run.events / "sampler-2.jsonl").write_bytes(line(2, "sample-host", cpu_pct=7.0))
    watcher = RunWatcher(run)
    assert watcher.poll().host == {"cpu_pct": 7.0}


def test_a_second_sampler_leaves_and_a_killed_one_makes_room(run: RunDir) -> None:
    target = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    argv = [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(target.pid), "--no-stacks"]
    first = subprocess.Popen(argv, stderr=subprocess.PIPE)
    try:
        wait_for_samples(run, 1)
        second = subprocess.run(argv, capture_output=True, timeout=60)
        assert second.returncode == 0
        assert b"another sampler is at work" in second.stderr
        first.kill()
        first.communicate()
        seen = len(sequence(run.events / "sampler.jsonl"))
        third = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        wait_for_samples(run, seen + 2)
        third.terminate()
        third.wait(30)
    finally:
        for process in (first, target):
            process.kill()
            process.wait()
    numbers = sequence(run.events / "sampler.jsonl")
    assert numbers == sorted(set(numbers))  # one writer at a time: no number twice


def wait_for_samples(run: RunDir, count: int) -> None:
    end = time.monotonic() + 30
    while len(sequence(run.events / "sampler.jsonl")) < count:
        assert time.monotonic() < end
        time.sleep(0.1)
