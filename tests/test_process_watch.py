"""Odd processes are watched without harm: a shell above the training, the kernel's own, ourselves, one that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.process_watch import ProcessWatcher

BUSY = "def train():\n    x = 0\n    while True:\n        x += 1\ntrain()\n"


def test_below_a_shell_the_python_that_computes_is_looked_at(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BUSY)
    shell = subprocess.Popen(["sh", "-c", f"{sys.executable} {script}; true"], start_new_session=True)
    try:
        time.sleep(1.0)
        watcher = ProcessWatcher(shell.pid)
        try:
            watcher.settle()
            frames = watcher.state.stacks["frames"]
        finally:
            watcher.close()
    finally:
        os.killpg(shell.pid, 9)
        shell.wait()
    assert [(frame["function"], frame["process"]) for frame in frames if frame["self_share"] > 0.5] == [
        ("train", "trainer")
    ]


@pytest.mark.skipif(not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text().strip() != "kthreadd" or os.getuid() != 0,
                    reason="no kernel threads are seen from here")  # fmt: skip
def test_a_thread_of_the_kernel_is_said_to_be_one_at_once() -> None:
    watcher = ProcessWatcher(2)
    try:
        watcher.settle()
        assert "thread of the kernel" in str(watcher.state.stacks["why"])
    finally:
        watcher.close()


def test_a_process_that_ends_is_over_and_said_to_be() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    watcher = ProcessWatcher(process.pid)
    try:
        watcher.poll()
        assert not watcher.is_over()
        process.kill()  # and stays a zombie, which has ended too
        time.sleep(0.2)
        watcher.poll()
        assert watcher.is_over() and watcher.status() == "ended"
        assert "has ended" in str(watcher.state.notes[-1].data["text"])
    finally:
        watcher.close()
        process.wait()


def test_another_process_with_the_same_number_is_not_the_one_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = ProcessWatcher(os.getpid())
    try:
        monkeypatch.setattr(watcher, "_start_ticks", watcher._start_ticks - 1)
        watcher.poll()
        assert watcher.is_over()
    finally:
        watcher.close()


@pytest.mark.parametrize("pid", [0, -1, 1 << 40])
def test_a_number_of_no_process_is_refused(pid: int) -> None:
    with pytest.raises(ProcessLookupError):
        ProcessWatcher(pid)
