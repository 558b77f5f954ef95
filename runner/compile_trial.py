"""One trial of ``torch.compile``: what it needs, how long it may take, and whether compiled code answers as the model does."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runner.engine import Engine
from runner.evaluation import evaluation_mode
from runner.text import Text, t
from runner.workbench import Batch

TOLERANCE = {"fp32": 1e-3, "bf16": 5e-2, "fp16": 2e-2}
"""Of the largest logit: compiled kernels add in another order and keep other values in 32 bits."""
LOOK_EVERY_S = 1.0
LEAST_FREE_MB = 50
"""On the disk of compiled code: a model's takes megabytes, and a full disk is noticed late."""
STOPPED = t("compile: given up, the run was asked to stop")


class GivenUp(Exception):  # noqa: N818 - it is what it says
    """The trial ends here. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def missing(device: str) -> Text | None:
    """Return what compiling for ``device`` lacks here, told before a minute is spent on finding out; None: nothing is known to be."""
    return missing_tool(device) or cache_trouble()


def cache_trouble() -> Text | None:
    """Return why the folder for compiled code takes none; None: it does."""
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir()
    present = folder
    while not os.path.exists(present) and os.path.dirname(present) != present:  # noqa: PTH110, PTH120 - as torch makes it
        present = os.path.dirname(present)  # noqa: PTH120
    if not os.access(present, os.W_OK | os.X_OK):
        return t("compile: not tried, the folder for compiled code {path} cannot be written; TORCHINDUCTOR_CACHE_DIR names another", path=folder)  # fmt: skip
    free_mb = shutil.disk_usage(present).free >> 20
    if free_mb < LEAST_FREE_MB:
        return t("compile: not tried, the folder for compiled code {path} has {free} MB free; TORCHINDUCTOR_CACHE_DIR names another", path=folder, free=free_mb)  # fmt: skip
    return None


def missing_tool(device: str) -> Text | None:
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return t(
            "compile: Triton, which makes the kernels for a GPU, is not installed; the run goes on without"
        )
    names = [os.environ.get("CC", ""), "gcc", "cc", "clang"] if device == "cuda" else [os.environ.get("CXX", ""), "g++", "clang++", "c++"]  # fmt: skip
    if any(name and shutil.which(name.split()[0]) for name in names):
        return None
    if device == "cuda":
        return t("compile: no C compiler (gcc) was found, and Triton needs one; the run goes on without")
    return t("compile: no C++ compiler (g++) was found, and torch.compile needs one; the run goes on without")


@contextlib.contextmanager
def at_most(seconds: float, stopped: Callable[[], bool]) -> Iterator[None]:
    """Raise GivenUp out of the block when it has taken ``seconds``, or when somebody asks the run to stop.

    By a timer's signal, which reaches Python code and waits for a compiler alike; again every second, since a library may
    take an exception for its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end = time.monotonic() + seconds

    def look(*_: Any) -> None:
        if stopped():
            raise GivenUp(STOPPED)
        if time.monotonic() > end:
            raise GivenUp(
                t("compile: given up after {seconds} s; the run goes on without", seconds=round(seconds))
            )

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, min(LOOK_EVERY_S, seconds), LOOK_EVERY_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def why_of(error: BaseException) -> Text:
    """Return why a trial failed: our own sentence wherever in the chain it stands, else the library's first line."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, GivenUp):
            return seen.text
        seen = seen.__cause__ or seen.__context__
    words = str(error).strip().partition("\n")[0][:200]
    return t("compile: given up ({why}); the run goes on without", why=f"{type(error).__name__}: {words}")


def furthest_apart(engine: Engine, eager: Any, batch: Batch) -> float:
    """Return the largest difference between compiled and eager logits without dropout, in parts of the largest logit."""
    moved = engine.to_device(batch)
    with evaluation_mode(engine.model), engine.without_gradients():
        ours = engine.logits(moved).float()
        compiled, engine.model = engine.model, eager
        try:
            plain = engine.logits(moved).float()
        finally:
            engine.model = compiled
    return float((ours - plain).abs().max() / plain.abs().max().clamp_min(1e-6))


def graphs_made() -> int:
    """Return how many graphs torch has compiled in this process; 0 where this torch does not count them."""
    counters: Any = getattr(
        torch._dynamo.utils, "counters", {}
    )  # torch's own affair, and called so since 2.0
    return int(counters["stats"]["unique_graphs"]) if counters else 0


def stop_compilers() -> None:
    """End the processes that torch keeps for compiling: nobody needs them any more, and each holds memory."""
    torch._dynamo.reset()
    with contextlib.suppress(ImportError, AttributeError):  # torch's own affair, and called so since 2.1
        from torch._inductor.async_compile import shutdown_compile_workers

        shutdown_compile_workers()
