"""The sampler beside real processes: what it writes, when it ends, and what cannot end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from doctor.gpu_meter import GpuMeter
from doctor.model import Gpu, t
from doctor.probes.host_meter import cgroup_memory, machine_memory, oom_kills
from doctor.probes.nvml_rates import NvmlXid, Rates
from doctor.probes.nvml_rows import NvmlProcess
from doctor.pyspy import find_pyspy, record
from doctor.silence import Silence
from runner.events import EventWriter, RunEvent, read_events
from runner.rundir import RunDir
from runner.text import Text

BUSY = """
import time
def inner(n): return sum(i * i for i in range(n))
def busy():
    end = time.time() + 60
    while time.time() < end: inner(20000)
busy()
"""
needs_pyspy = pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed")


@pytest.fixture
def target() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.make()
    return run


@pytest.fixture
def sample(run: RunDir) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    begun: list[subprocess.Popen[bytes]] = []

    def go(pid: int, *options: str, **extra: Any) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(pid), *options]
        begun.append(subprocess.Popen(argv, stderr=subprocess.PIPE, **extra))
        return begun[-1]

    yield go
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def events(run: RunDir) -> list[RunEvent]:
    return [event for event, _ in read_events(run.events / "sampler.jsonl")]


def wait_for(run: RunDir, kind: str, count: int = 1, seconds: float = 20) -> list[RunEvent]:
    end = time.monotonic() + seconds
    while len(found := [event for event in events(run) if event.kind == kind]) < count:
        assert time.monotonic() < end, f"no {kind} among {[event.kind for event in events(run)]}"
        time.sleep(0.1)
    return found


Sample = Callable[..., "subprocess.Popen[bytes]"]


@needs_pyspy
def test_it_sees_where_the_target_is_busy_and_ends_with_it(
    run: RunDir, target: subprocess.Popen[bytes], sample: Sample
) -> None:
    sampler = sample(target.pid)
    stacks = wait_for(run, "sample-stacks")[0].data
    functions = {frame["function"]: frame for frame in stacks["frames"]}
    assert functions["busy"]["total_share"] > 0.8
    assert functions["busy"]["process"] == "trainer"
    host = wait_for(run, "sample-host", 2)[-1].data
    assert host["cpu_pct"] > 20
    assert host["rss_bytes"] > 1 << 20
    assert host["memory_limit_bytes"] > host["memory_used_bytes"] > 0
    target.kill()
    target.wait()
    assert sampler.wait(10) == 0
    last = events(run)[-1]
    assert (last.kind, last.data["level"]) == ("note", "fail")
    assert "gone without a word" in last.data["text"]["msgid"]


def test_a_trainer_that_said_goodbye_is_not_called_gone(
    run: RunDir, target: subprocess.Popen[bytes], sample: Sample
) -> None:
    sampler = sample(target.pid, "--no-stacks")
    wait_for(run, "sample-host")
    EventWriter(run.events / "trainer-0.jsonl", "trainer-0").write("run-finished", outcome="completed")
    target.kill()
    target.wait()
    assert sampler.wait(10) == 0
    assert not [event for event in events(run) if event.kind == "note"]


def test_sigterm_ends_it_and_leaves_the_target_alone(
    run: RunDir, target: subprocess.Popen[bytes], sample: Sample
) -> None:
    sampler = sample(target.pid)
    wait_for(run, "sample-host", 2)
    sampler.send_signal(signal.SIGTERM)
    assert sampler.wait(10) == 0
    assert target.poll() is None


@needs_pyspy
def test_silence_is_dumped_and_noted_once(
    run: RunDir, target: subprocess.Popen[bytes], sample: Sample
) -> None:
    sample(target.pid, "--no-stacks", "--silence-s", "1.5")
    note = wait_for(run, "note")[0]
    dumped = (run.path / note.data["file"]).read_text()
    assert "busy" in dumped
    assert "inner" in dumped
    time.sleep(2.5)
    assert len([event for event in events(run) if event.kind == "note"]) == 1


def test_without_py_spy_it_says_how_to_get_it_and_samples_on(
    run: RunDir, target: subprocess.Popen[bytes], tmp_path: Path, sample: Sample
) -> None:
    # An interpreter with our packages but without py-spy beside it: a link to this one in another folder.
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    argv = [str(python), "-m", "doctor.sampler", str(run.path), "--pid", str(target.pid)]
    process = subprocess.Popen(argv, env={**os.environ, "PATH": "/nonexistent", "PYTHONPATH": path})
    try:
        stacks = wait_for(run, "sample-stacks")[0].data
        assert stacks["trouble"] == "MISSING"
        assert "pip install py-spy" in stacks["why"]["params"]["command"]
        wait_for(run, "sample-host", 3)
    finally:
        process.kill()
        process.wait()


def test_a_full_disk_does_not_end_it(run: RunDir, target: subprocess.Popen[bytes], sample: Sample) -> None:
    # RLIMIT_FSIZE stands for a full disk: a write past it fails as one does.
    limit = "import resource,runpy,sys;resource.setrlimit(resource.RLIMIT_FSIZE,(400,400));sys.argv[0]='s';runpy.run_module('doctor.sampler',run_name='__main__')"
    argv = [sys.executable, "-c", limit, str(run.path), "--pid", str(target.pid), "--no-stacks"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE)
    time.sleep(4)
    assert process.poll() is None
    target.kill()
    target.wait()
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 0
    assert stderr.count(b"sampler.jsonl") == 1  # said once, not every second
    assert (run.events / "sampler.jsonl").stat().st_size <= 400
    assert all(event.kind.startswith("sample-") for event in events(run))


def test_no_run_there_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "doctor.sampler", str(tmp_path), "--pid", "1"], capture_output=True
    )
    assert (done.returncode, b"no run at" in done.stderr) == (1, True)


@needs_pyspy
def test_a_process_that_is_not_python_is_called_that() -> None:
    process = subprocess.Popen(["sleep", "30"])
    try:
        trouble = record(process.pid, 1).trouble
    finally:
        process.kill()
        process.wait()
    assert trouble is not None
    assert trouble.kind == "NOT_PYTHON"


@needs_pyspy
def test_a_process_that_is_gone_is_called_gone(target: subprocess.Popen[bytes]) -> None:
    target.kill()
    target.wait()
    trouble = record(target.pid, 1).trouble
    assert trouble is not None
    assert trouble.kind == "GONE"


def test_silence_learns_from_a_long_evaluation(tmp_path: Path) -> None:
    file = tmp_path / "trainer-0.jsonl"
    silence = Silence(tmp_path, after_s=60)

    def look(at: float, written: int) -> list[str]:
        file.write_text("x" * written)
        return [str(text) for text, _ in silence.look(at)]

    assert look(0, 1) == []
    assert look(59, 1) == []
    assert look(61, 1) == ["Nothing from the trainer for 61 s; where it stands is kept in stacks/."]
    assert look(90, 1) == []
    assert look(100, 2) == ["The trainer goes on after 1 m 40 s of silence."]
    assert look(250, 2) == []  # 150 s: below three times the 100 s that ended well
    assert len(look(401, 2)) == 1


def test_cgroup_memory_leaves_out_cache_that_can_be_dropped(tmp_path: Path) -> None:
    for name, text in {
        "memory.max": "1000\n",
        "memory.current": "900\n",
        "memory.stat": "anon 1\ninactive_file 300\n",
    }.items():
        (tmp_path / name).write_text(text)
    memory = cgroup_memory(tmp_path)
    assert memory is not None
    assert (memory.used_bytes, memory.limit_bytes, memory.scope) == (600, 1000, "container")
    (tmp_path / "memory.max").write_text("max\n")
    assert cgroup_memory(tmp_path) is None


def test_machine_memory_and_kills_are_read_from_literal_text(tmp_path: Path) -> None:
    memory = machine_memory("MemTotal:  16000 kB\nMemFree: 1 kB\nMemAvailable:  4000 kB\n")
    assert (memory.used_bytes, memory.limit_bytes) == (12000 * 1024, 16000 * 1024)
    (tmp_path / "memory.events").write_text("low 0\noom 2\noom_kill 3\n")
    assert (oom_kills(tmp_path), oom_kills(tmp_path / "none")) == (3, None)


class Answers:
    """An NVML reader that gives what it was handed, one answer a sample."""

    def __init__(self, *answers: list[Gpu] | Text, waits: int = 0) -> None:
        self.answers, self.waits = list(answers), waits
        """After each of the first ``waits`` answers the driver's own is still under way."""
        self.is_waiting = False
        self.processes: tuple[NvmlProcess, ...] = ()
        self.processes_unread = ""
        self.rates: dict[int, Rates] = {}
        self.xids: list[NvmlXid] = []
        self.xids_unread: str | None = None

    def sample(self, timeout_s: float = 0.0) -> list[Gpu] | Text:
        self.is_waiting, self.waits = self.waits > 0, self.waits - 1
        return self.answers.pop(0)

    def close(self) -> None:
        self.answers.clear()


def test_a_card_is_shown_with_what_could_not_be_read() -> None:
    gpu = Gpu(
        index=1,
        name="RTX 4090",
        utilization_pct=0.0,
        throttle_reasons=(),
        unread={"power_w": "Not Supported", "ecc_enabled": "no"},
    )
    assert GpuMeter(reader=Answers([gpu])).sample() == {
        "gpus": [{"index": 1, "name": "RTX 4090", "utilization_pct": 0.0, "throttle_reasons": [], "unread": {"power_w": "Not Supported"}}],
        "processes": [],
    }  # fmt: skip


def test_a_slow_first_answer_is_waited_for_and_not_declared_dead() -> None:
    clock, late = [0.0], t("no answer within 0.8 s")
    meter = GpuMeter(clock=lambda: clock[0], reader=Answers(*[late] * 5, [Gpu(name="A")], waits=5))
    seen = []
    for second in range(6):
        clock[0] = float(second)
        seen.append(meter.sample())
    assert str(seen[0]["why"]) == "no answer within 0.8 s"
    assert "asked 4 s ago and has not answered yet" in str(seen[4]["why"])
    assert seen[5]["gpus"] == [{"index": 0, "name": "A"}]


def test_a_number_that_is_no_process_of_ours_keeps_no_command() -> None:
    reader = Answers([Gpu(name="A")], [Gpu(name="A")])
    reader.processes = (
        NvmlProcess(gpu_index=0, pid=2**22 + 7, used_bytes=5),
        NvmlProcess(gpu_index=0, pid=os.getpid()),
    )
    meter = GpuMeter(reader=reader)
    assert meter.sample()["processes"] == [
        {"gpu_index": 0, "pid": 2**22 + 7, "used_bytes": 5}, {"gpu_index": 0, "pid": os.getpid()},
    ]  # fmt: skip
    reader.processes, reader.processes_unread = (), "Insufficient Permissions"
    assert meter.sample()["processes_why"] == "Insufficient Permissions"


def test_no_driver_is_asked_again_a_minute_later() -> None:
    clock = [0.0]
    meter = GpuMeter(clock=lambda: clock[0], reader=Answers(t("no driver"), [Gpu(name="A")]))
    assert str(meter.sample()["why"]) == "no driver"
    clock[0] = 59.0
    assert "why" in meter.sample()
    clock[0] = 61.0
    assert meter.sample()["gpus"][0]["name"] == "A"
