"""A lock is the trainer's alone: neither a forked child nor a program it starts keeps the file open."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A process that has what a launcher hands a trainer, an open and locked file that programs inherit, and forks.
SCRIPT = """
import os, subprocess, sys, time
from pathlib import Path
from runner.forked import leave_to_this_process
lock, kept = Path(sys.argv[1]), sys.argv[2] == "kept"
if not kept:
    leave_to_this_process(lock, lock.with_name("no such file"))
if sys.argv[3] == "fork":
    child = os.fork()
else:
    child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL).pid
if child == 0:
    os.close(1)
    time.sleep(60)
print(child, flush=True)
os.kill(os.getpid(), 9)
"""


def free_within(descriptor: int, seconds: float) -> None:
    """Take the lock as soon as nobody has it: the child closes its copy a moment after it was forked."""
    end = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@pytest.mark.parametrize("way", ["fork", "program"])
@pytest.mark.parametrize("kept", ["kept", "left"])
def test_a_child_that_outlives_the_trainer_holds_no_lock(tmp_path: Path, kept: str, way: str) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    argv = [sys.executable, "-c", SCRIPT, str(path), kept, way]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(argv, pass_fds=(descriptor,), stdout=subprocess.PIPE, text=True, env=environ)
    os.close(descriptor)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.wait()
    process.stdout.close()
    again = os.open(path, os.O_RDWR)
    try:
        if kept == "kept":
            with pytest.raises(BlockingIOError):
                fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            free_within(again, seconds=10)
    finally:
        os.close(again)
        os.kill(child, 9)
