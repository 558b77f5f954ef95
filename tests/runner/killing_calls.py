"""Processes killed by strace at the n-th system call of something they do. They stop themselves before it, so that only its
calls are counted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from runner.checkpoint import MODEL, OPTIMIZER, Copy, checkpoint_folders, read_state
from runner.durable import what_is_wrong
from runner.rundir import RunDir

WAIT_S = 60.0


def can_trace() -> bool:
    """May a process be traced here? Containers often forbid it."""
    if shutil.which("strace") is None:
        return False
    argv = ["strace", "-o", os.devnull, "-e", "inject=all:signal=KILL:when=1", sys.executable, "-c", ""]
    return subprocess.run(argv, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL


def traced(process: Any, call: int) -> int:
    """Let a process that stopped itself go on until its ``call``-th system call; return how it ended."""
    _until(lambda: _status(process.pid, "State").startswith("T"))
    inject = f"inject=all:signal=KILL:when={call}"
    strace = subprocess.Popen(["strace", "-o", os.devnull, "-e", inject, "-p", str(process.pid)], stderr=subprocess.DEVNULL)  # fmt: skip
    _until(lambda: _status(process.pid, "TracerPid") not in ("", "0"))
    os.kill(process.pid, signal.SIGCONT)
    process.join()
    strace.wait()
    return int(process.exitcode)


def _status(pid: int, name: str) -> str:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    return ""


def _until(is_so: Any) -> None:
    until = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until, "it never came to the place"
        time.sleep(0.002)


# -- one save
def _save(path: str) -> None:
    import safetensors.torch

    from runner.saver import Saver

    run = RunDir(path)
    ((window, folder),) = checkpoint_folders(run)
    state = read_state(folder)
    state.windows_done = window + 1
    copy = Copy(
        state, safetensors.torch.load_file(folder / MODEL), safetensors.torch.load_file(folder / OPTIMIZER)
    )
    saver = Saver(run, keep_last=1)
    os.kill(os.getpid(), signal.SIGSTOP)
    saver._save(copy, "interval")
    os._exit(0)


def save_killed_at(server: Any, run: RunDir, call: int) -> int:
    """Save one window beyond the run's only checkpoint and die at the ``call``-th system call; return the exit code.

    Raises:
        AssertionError: what has a checkpoint's name is not whole, or neither the older nor the newer is there.
    """
    ((window, _),) = checkpoint_folders(run)
    process = server.Process(target=_save, args=(str(run.path),))
    process.start()
    code = traced(process, call)
    found = checkpoint_folders(run)
    wrong = [f"{folder.name}: {what_is_wrong(folder)}" for _, folder in found if what_is_wrong(folder)]
    assert not wrong, f"killed at call {call}: {wrong}"
    assert found and found[0][0] in (window, window + 1), f"killed at call {call}: {found}"
    return code


# -- the end of a run
def _finish(path: str) -> None:
    import runner.trainer
    from runner.session import run_session
    from runner.signals import StopRequest

    trainer: Any = runner.trainer
    finish = trainer.finish_run

    def stopped_first(bench: Any) -> Any:
        os.kill(os.getpid(), signal.SIGSTOP)
        return finish(bench)

    trainer.finish_run = stopped_first
    sys.exit(run_session(path, True, StopRequest.install()))


def finish_traced(server: Any, run: RunDir, call: int) -> int:
    """Continue a run and die at the ``call``-th system call of the main thread after its last window."""
    process = server.Process(target=_finish, args=(str(run.path),))
    process.start()
    return traced(process, call)
