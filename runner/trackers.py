"""Experiment trackers told of steps and evaluations through accelerate: beside the run, never in its way.

Each has a thread and a queue of its own: one that raises is left out with a warning, one that hangs fills its queue and
is then left out too. No step waits for any of them.
"""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from runner.text import Text, t

QUEUE_LENGTH = 10_000
FINISH_S = 10.0
"""How long the end of a run waits for a tracker to write what it has."""

Warn = Callable[[str, Text], None]
_TOLD = {"step": ("loss", "lr", "grad_norm", "epoch"), "evaluation": None}


class Tracker:
    """One tracker behind a queue."""

    def __init__(self, name: str, make: Callable[[], Any], config: dict[str, Any], warn: Warn) -> None:
        self.name, self._make, self._config, self._warn = name, make, config, warn
        self._queue: queue.Queue[tuple[dict[str, float], int] | None] = queue.Queue(QUEUE_LENGTH)
        self._trouble: Text | None = None
        self._told = False
        self._thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            tracker = self._make()
            tracker.store_init_configuration(self._config)
            while (item := self._queue.get()) is not None:
                tracker.log(item[0], step=item[1])
            tracker.finish()
        except (
            Exception
        ) as error:  # whatever a tracker raises is its own trouble, told by the trainer's thread
            why = f"{type(error).__name__}: {str(error)[:300]}"
            self._trouble = t(
                "the tracker {name} is left out: {why}; the run goes on", name=self.name, why=why
            )

    def take(self, values: dict[str, float], step: int) -> None:
        if self._trouble is None:
            self._put((values, step))
        self._tell()

    def _put(self, item: tuple[dict[str, float], int] | None) -> None:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self._trouble = t(
                "the tracker {name} is left out: it does not keep up; the run goes on", name=self.name
            )

    def _tell(self) -> None:
        if self._trouble is not None and not self._told:
            self._told = True
            self._warn("warn", self._trouble)

    def finish(self) -> None:
        """Let it write what it has, for a limited time."""
        if self._thread.is_alive() and self._trouble is None:
            self._put(None)
            self._thread.join(FINISH_S)
            if self._thread.is_alive() and self._trouble is None:
                self._trouble = t("the tracker {name} did not finish within {seconds} s: what it shows may lack the end",
                                  name=self.name, seconds=round(FINISH_S))  # fmt: skip
        self._tell()


class Trackers:
    """All trackers of a run; :meth:`take` is called with every event."""

    def __init__(self, trackers: Iterable[Tracker]) -> None:
        self.trackers = list(trackers)

    def take(self, kind: str, step: int | None, data: dict[str, Any]) -> None:
        if kind not in _TOLD or step is None:
            return
        names = _TOLD[kind]
        prefix = "train" if kind == "step" else "eval"
        values = {
            f"{prefix}/{name}": float(value)
            for name, value in data.items()
            if isinstance(value, (int, float)) and math.isfinite(value) and (names is None or name in names)
        }
        for tracker in self.trackers:
            tracker.take(values, step)

    def finish(self) -> None:
        for tracker in self.trackers:
            tracker.finish()


def make_trackers(names: list[str], run_path: Path, config: dict[str, Any], warn: Warn) -> Trackers:
    """Return the trackers called ``names``; what they keep locally goes under ``RUN_DIR/trackers``."""
    folder = run_path / "trackers"
    if names:
        folder.mkdir(exist_ok=True)
        # Offline unless the person says otherwise: a login question or a dead network would hold the run up.
        os.environ.setdefault("WANDB_MODE", "offline")
        os.environ.setdefault("WANDB_DIR", str(folder))
        os.environ.setdefault("TRACKIO_DIR", str(folder))
    return Trackers(Tracker(name, _maker(name, run_path.name, folder), config, warn) for name in names)


def _maker(name: str, run_name: str, folder: Path) -> Callable[[], Any]:
    def make() -> Any:
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        kind = LOGGER_TYPE_TO_CLASS[name]
        tracker = (
            kind(run_name, logging_dir=str(folder)) if kind.requires_logging_directory else kind(run_name)
        )
        if hasattr(tracker, "start"):
            tracker.start()  # newer releases of accelerate make a tracker first and start it afterwards
        return tracker

    return make


def flat_config(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one level of names, plain values only: what every tracker accepts."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found |= flat_config(value, f"{name}.")
        else:
            found[name] = value if isinstance(value, (int, float, str, bool)) else str(value)
    return found
