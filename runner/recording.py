"""Events from a script that is not ours: ``doctor run -- python train.py`` sets DOCTOR_RUN_DIR, this writes
there.

Only rank 0 writes. Outside a supervised run nothing is written, and that is said once on stderr. Recording
never stops the script.
"""

from __future__ import annotations

import functools
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from runner.events import EventWriter

VARIABLE = "DOCTOR_RUN_DIR"
BY_LOOP = {"told_by": "runner.log"}
"""In ``run-started``: a hand-written loop tells what it likes, and its evaluations perhaps only in print."""


class Recorder:
    """Writes run events for a foreign script; a step's ``seconds`` are those since the step before."""

    def __init__(self, run_dir: Path | str | None = None) -> None:
        self._writer = open_writer(run_dir)
        self._started = self._last_step_at = time.monotonic()
        self._begun = False

    @property
    def is_open(self) -> bool:
        """Whether anything is recorded: inside a supervised run, on rank 0, as long as the disk takes it."""
        return self._writer is not None

    def begin(self, **data: Any) -> None:
        """Write ``run-started``; once."""
        if not self._begun:
            self._begun = True
            here = {"pid": os.getpid(), "hostname": socket.gethostname(), **_together(os.environ)}
            self.write("run-started", None, **{**here, **data})
            self._started = self._last_step_at = time.monotonic()

    def step(self, step: int, **data: Any) -> None:
        """Write a step, with the time since the one before; the first takes it from :meth:`begin`, where that was called."""
        now = time.monotonic()
        seconds = {"seconds": now - self._last_step_at} if self._begun else {}
        self.begin(**BY_LOOP)
        self.write("step", step, **{**seconds, **data})
        self._last_step_at = now

    def evaluation(self, step: int, **metrics: Any) -> None:
        self.write("evaluation", step, **metrics)
        self._last_step_at = time.monotonic()

    def finish(self, outcome: str, steps: int, **data: Any) -> None:
        self.write(
            "run-finished",
            None,
            outcome=outcome,
            steps=steps,
            seconds=time.monotonic() - self._started,
            **data,
        )

    def write(self, kind: str, step: int | None, **data: Any) -> None:
        if self._writer is None:
            return
        try:
            self._writer.write(kind, step, **{name: plain(value) for name, value in data.items()})
        except (OSError, TypeError, ValueError, OverflowError) as error:
            self.give_up(str(error))

    def give_up(self, why: str) -> None:
        """Record nothing from now on; say so, once."""
        if self._writer is not None:
            sys.stderr.write(f"doctor: recording stops, the script goes on: {why}\n")
        self._writer = None


def open_writer(run_dir: Path | str | None) -> EventWriter | None:
    """Return the writer of the supervised run, or None on other ranks and outside of one."""
    if os.environ.get("RANK", "0") != "0":
        return None
    folder = run_dir or os.environ.get(VARIABLE)
    if not folder:
        sys.stderr.write(
            f"doctor: {VARIABLE} is not set, nothing is recorded; start with: doctor run -- COMMAND\n"
        )
        return None
    events = Path(folder) / "events"
    try:
        events.mkdir(parents=True, exist_ok=True)
        return EventWriter(events / "trainer-0.jsonl", "trainer-0")
    except OSError as error:
        sys.stderr.write(f"doctor: nothing is recorded: {error}\n")
        return None


def metric_name(name: str) -> str:
    """Return what a metric is called here: one name for what scripts call differently, as in the reading of logs."""
    return "accuracy" if name == "acc" else name


def bytes_in(path: Path) -> int | None:
    """Return how much a checkpoint, a file or a folder, takes; None: it is not there (any more)."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) or None


def plain(value: Any) -> Any:
    """Return a number out of a zero-dimensional tensor or array; what JSON cannot hold as its words."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)[:200]


Method = TypeVar("Method", bound=Callable[..., None])


def never_raises(method: Method) -> Method:
    """Let a callback's own fault end its recording, said once, and never the training it looks at."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # whatever it is: it is ours, and the training goes on
            self.recorder.give_up(f"{type(error).__name__} in {method.__name__}: {error}")

    return guarded  # type: ignore[return-value] # same signature


_recorder: Recorder | None = None


# val_loss | eval/accuracy | test_f1
_EVALUATION = re.compile(r"^(?:eval|val|valid|validation|test)[_/](.+)$")


def log(*, step: int, **values: Any) -> None:
    """Record one step of a hand-written loop: ``runner.log(step=step, loss=loss, lr=lr, samples=len(batch))``.

    Names as in a ``step`` event: loss, lr, grad_norm, samples, tokens, epoch, steps_total. A loss tensor is read with
    ``item()``. What is called ``val_loss``, ``eval_accuracy`` ... is an evaluation (``eval_samples``: of how many rows).
    """
    global _recorder
    if _recorder is None:
        _recorder = Recorder()
    evaluation = {metric_name(found[1]): value for name, value in values.items() if (found := _EVALUATION.match(name))}  # fmt: skip
    training = {name: value for name, value in values.items() if not _EVALUATION.match(name)}
    if training:
        _recorder.step(step, **training)
    if evaluation:
        _recorder.evaluation(step, **evaluation)


def _together(environ: Mapping[str, str]) -> dict[str, int]:
    """Return how many processes train together, as torchrun tells each of them; nothing where one trains alone."""
    told = environ.get("WORLD_SIZE", "")
    return {"world_size": int(told)} if told.isdecimal() and int(told) > 1 else {}
