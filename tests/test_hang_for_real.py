"""Real processes that stand still, or only seem to, watched by the real sampler: what is said of each, and where it stands."""

from __future__ import annotations

import os
import platform
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from doctor import process_watch
from doctor.pyspy import find_pyspy
from doctor.watching import RunWatcher
from runner.rundir import RunDir
from runner.state import RunState
from runner.verdict import Verdict, verdict_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed"),
]
REPO = str(Path(__file__).parent.parent)
LOOKED_FOR_S = 20.0

TELLS = """
import ctypes, os, sys, threading, time
sys.path.insert(0, {repo!r})
from pathlib import Path
from runner.events import EventWriter
writer = EventWriter(Path({events!r}) / "trainer-0.jsonl", "trainer-0")
writer.write("run-started", device="cpu", steps_total=100)
for step in range(1, 11):
    time.sleep(0.05)
    writer.write("step", step, loss=1.0, samples=8, seconds=0.05, split={{"forward": 0.05}})
"""
DEADLOCK = """
def deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
deadlock()
"""
BLOCKED = """
CLONE_VFORK, SIGCHLD = 0x4000, 17
clone = {{"x86_64": 56, "aarch64": 220}}[os.uname().machine]
def dead_disk():
    # A parent waits in state D for a child that it started so, as it would for a disk that does not answer.
    if ctypes.CDLL(None).syscall(clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0:
        time.sleep(300)
        os._exit(0)
dead_disk()
"""
COMPUTES = """
def one_long_step():
    end = time.monotonic() + 300
    while time.monotonic() < end:
        sum(i * i for i in range(10000))
one_long_step()
"""
WRITES = """
def save():
    with open({events!r} + "/../model.bin", "wb", buffering=0) as file:
        while True:
            file.seek(0)
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
            time.sleep(0.2)
save()
"""
WORKER = """
import torch
torch.set_num_threads(1)
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index):
        return stuck() if index > 3 else torch.zeros(4)
def stuck():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
for rows in torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=1):
    pass
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.make()
    return run


@contextmanager
def watched(run: RunDir, process: subprocess.Popen[bytes], *options: str) -> Iterator[None]:
    """Let the real sampler look at ``process`` for as long as the body lasts; both are gone after it."""
    argv = [
        sys.executable,
        "-m",
        "doctor.sampler",
        str(run.path),
        "--pid",
        str(process.pid),
        "--silence-s",
        "3",
        *options,
    ]
    sampler = subprocess.Popen(argv, start_new_session=True)
    try:
        yield
    finally:
        sampler.terminate()
        sampler.wait(30)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start(run: RunDir, body: str) -> subprocess.Popen[bytes]:
    script = run.path / "train.py"
    script.write_text((TELLS + body).format(repo=REPO, events=str(run.events)))
    return subprocess.Popen([sys.executable, str(script)], start_new_session=True)


def folded(run: RunDir) -> RunState:
    watcher = RunWatcher(run)
    return watcher.poll()


def said(run: RunDir, silent_s: float) -> Verdict:
    """Return the verdict as it would be after ``silent_s`` seconds of what was seen."""
    state = folded(run)
    assert state.last_trainer_t is not None
    return verdict_of(state, "stalled", state.last_trainer_t + silent_s)


def test_a_deadlock_is_called_hung_with_its_line_and_its_stack_is_kept(run: RunDir) -> None:
    with watched(run, start(run, DEADLOCK)):
        time.sleep(LOOKED_FOR_S)
    found = said(run, 130)
    assert found.kind == "hung", found
    assert "deadlock (train.py:" in str(found.sentence)
    (kept,) = run.stacks.glob("silent-*.txt")
    text = kept.read_text()
    assert "deadlock" in text
    assert "state S, futex()" in text
    assert "with native frames" in text
    evidence = [str(text) for text in found.evidence]
    assert f"the whole stack: stacks/{kept.name}" in evidence


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="clone has another number here")
def test_a_read_that_does_not_return_is_told_apart_by_its_state(run: RunDir) -> None:
    with watched(run, start(run, BLOCKED)):
        time.sleep(LOOKED_FOR_S)
    assert said(run, 200).kind == "unknown"
    found = said(run, 310)
    assert found.kind == "hung", found
    assert "(state D)" in str(found.sentence)
    assert "dead_disk (train.py:" in str(found.sentence)


def test_a_stopped_trainer_is_called_paused_and_how_to_let_it_go_on(run: RunDir) -> None:
    process = start(run, COMPUTES)
    with watched(run, process):
        time.sleep(3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(LOOKED_FOR_S)
    found = said(run, 65)
    assert found.kind == "hung", found
    assert "SIGSTOP" in str(found.sentence)
    assert "kill -CONT" in str(found.advice)


@pytest.mark.train
def test_a_loader_worker_that_stands_is_named_and_not_the_line_that_waits_for_it(run: RunDir) -> None:
    with watched(run, start(run, WORKER)):
        time.sleep(LOOKED_FOR_S + 10)
    found = said(run, 130)
    assert found.kind == "hung", found
    assert "loader worker that stands at stuck (train.py:" in str(found.sentence)


@pytest.mark.parametrize(
    ("body", "words"), [(COMPUTES, "computes"), (WRITES, "kB/s")], ids=["a long step", "a slow save"]
)
def test_what_only_seems_to_stand_is_not_called_hung(run: RunDir, body: str, words: str) -> None:
    with watched(run, start(run, body)):
        time.sleep(LOOKED_FOR_S)
    found = said(run, 3600)
    assert found.kind != "hung", found
    assert words in str(found.sentence)


@pytest.fixture
def asking(run: RunDir) -> Iterator[subprocess.Popen[bytes]]:
    """A script that asks a question on a terminal of its own."""
    script = run.path / "train.py"
    script.write_text("def ask():\n    return input('overwrite? ')\nask()\n")
    own, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=theirs, stdout=theirs, start_new_session=True
    )
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()
    os.close(own)
    os.close(theirs)


def test_a_script_that_waits_for_the_keyboard_is_seen_to_read_from_the_terminal(
    run: RunDir, asking: subprocess.Popen[bytes]
) -> None:
    with watched(run, asking, "--supervised"):
        time.sleep(LOOKED_FOR_S)
    state = folded(run)
    (wait,) = state.standing["waits"]
    assert wait["call"].startswith("read(/dev/pts/")
    found = verdict_of(state, "running", time.time())
    assert found.kind == "still"
    assert "keyboard" in str(found.sentence) and "ask (train.py:2)" in str(found.sentence)


def test_so_it_is_where_nobody_but_us_looks(
    asking: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_watch, "IDLE_S", 3.0)
    watcher = process_watch.ProcessWatcher(asking.pid)
    try:
        end = time.monotonic() + 60
        while (
            found := verdict_of(watcher.poll(), "running", time.time())
        ).kind != "still" and time.monotonic() < end:
            time.sleep(1.0)
    finally:
        watcher.close()
    assert "keyboard" in str(found.sentence)
