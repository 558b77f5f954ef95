"""Trainers that are killed or asked to stop: forked from a server that has torch imported, so that one is at work within
a moment."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from runner.rundir import RunDir
from tests.runner.tiny import events


class Signalled(NamedTuple):
    """Signals that a trainer sends itself when it comes to a place."""

    function: str
    """``module:name`` or ``module:Class.name``"""
    number: int = signal.SIGTERM
    times: int = 1
    call: int = 1
    """Of the function, counted from 1."""


def fork_server() -> Any:
    """Return a context whose processes are forked from one that has torch imported; one thread, so that forking is safe."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])  # Python 3.11's fork server ignores sys.path
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.runner.preload"])
    return context


def start(
    server: Any, run: RunDir, resume: bool = False, kill_at_call: int = 0, signalled: Signalled | None = None
) -> Any:
    """Start a trainer; ``kill_at_call`` n: it dies just before the n-th file operation of the checkpoint thread."""
    process = server.Process(target=_child, args=(str(run.path), resume, kill_at_call, signalled))
    process.start()
    return process


def wait_for_step(run: RunDir, step: int) -> None:
    """Return when the trainer has written that step; a minute is more than any of these runs lasts."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if any((event.step or 0) >= step for event in events(run, "step")):
            return
        time.sleep(0.01)
    raise AssertionError(f"step {step} never came")


def _child(path: str, resume: bool, kill_at_call: int, signalled: Signalled | None) -> None:
    from runner.session import run_session
    from runner.signals import StopRequest

    log = os.open(Path(path) / "trainer.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if kill_at_call:
        _die_at(kill_at_call)
    if signalled is not None:
        _send_at(signalled)
    sys.exit(run_session(path, resume, StopRequest.install()))


def _die_at(call: int) -> None:
    calls = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal calls
        if (
            event.split(".")[0] in ("open", "os", "shutil")
            and threading.current_thread().name == "checkpoint"
        ):
            calls += 1
            if calls == call:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def _send_at(wanted: Signalled) -> None:
    module, _, path = wanted.function.partition(":")
    *outer, name = path.split(".")
    place: Any = functools.reduce(getattr, outer, importlib.import_module(module))
    original, calls = getattr(place, name), 0

    @functools.wraps(original)
    def watched(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == wanted.call:
            for _ in range(wanted.times):
                os.kill(os.getpid(), wanted.number)
                time.sleep(0.1)  # two that come at once are one
        return original(*arguments, **options)

    setattr(place, name, watched)
