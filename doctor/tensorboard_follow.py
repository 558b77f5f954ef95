"""A training's TensorBoard folder, followed: its scalars as ``step`` and ``evaluation`` events, at the times they were written."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from doctor.bounded_walk import Bounds, walk
from doctor.log_values import sorted_values
from doctor.tensorboard_file import Damaged, Scalars, read_scalars
from runner.events import RunEvent
from runner.text import t

MARK = "tfevents"
# runs/exp1/events.out.tfevents.1700000000.host.123.0
_BOUNDS = Bounds(depth=6)
READ_BYTES = 8 << 20
# Loss/train, Accuracy/val -> train/Loss, val/Accuracy: what comes after the name says of which part it is
_PART_LAST = re.compile(r"^(.+)[/_](train|training|val|valid|validation|eval|test|dev)$", re.IGNORECASE)


def is_tensorboard(path: Path) -> bool:
    """Return whether a log is TensorBoard's: one of its files, or a folder."""
    return path.is_dir() or MARK in path.name


class TensorboardFollower:
    """As :class:`doctor.log_follow.LogFollower`, of event files. Of a folder with several runs the newest is read."""

    def __init__(self, path: Path) -> None:
        """Raises OSError when there is no event file, or it cannot be read."""
        files = [path] if path.is_file() else event_files(path)
        if not files:
            raise FileNotFoundError(2, "no TensorBoard event file (*tfevents*) in it", str(path))
        newest = max(files, key=lambda file: file.stat().st_mtime)
        with open(newest, "rb"):
            pass  # permission is learned now, not on the first look
        self.path = path if path.is_file() else newest.parent
        self._offsets: dict[Path, int | None] = {}
        """How far each file is read; None: it is damaged."""
        self._waiting: Scalars | None = None
        """TensorBoard writes an event a scalar: those of one step are put together."""
        self._seq = 0
        self._last: tuple[int, float] | None = None

    def read(self) -> Iterator[RunEvent]:
        """Yield what came since the last call. Raises OSError; a file damaged from some place on is read up to there."""
        files = [self.path] if self.path.is_file() else sorted(event_files(self.path, Bounds(depth=0)))
        came = False
        for file in files:
            for scalars in self._new_of(file):
                came = True
                yield from self._join(scalars) if isinstance(scalars, Scalars) else (scalars,)
        if not came:  # nothing more of that step is on its way
            yield from self._settle()

    def _new_of(self, file: Path) -> Iterator[Scalars | RunEvent]:
        """Yield what a file says anew; where it is damaged, a note of that, and nothing of it ever after."""
        at = self._offsets.get(file, 0)
        if at is None:
            return
        with open(file, "rb") as stream:
            stream.seek(at)
            rest = b""
            while content := stream.read(READ_BYTES):
                try:
                    found, used = read_scalars(rest + content)
                except Damaged:
                    self._offsets[file] = None
                    yield self._damage(file, at)
                    return
                yield from found
                rest, at = (rest + content)[used:], at + used
        self._offsets[file] = at

    def _damage(self, file: Path, at: int) -> RunEvent:
        text = t(
            "{file} is damaged behind byte {byte}: what stands there is not shown", file=file.name, byte=at
        )
        data = {"level": "warn", "text": text}
        return RunEvent(seq=self._seq, t=time.time(), source="sampler", kind="note", data=data)

    def _join(self, scalars: Scalars) -> Iterator[RunEvent]:
        waiting = self._waiting
        if waiting is not None and waiting.step == scalars.step:
            values = {**waiting.values, **scalars.values}
            self._waiting = Scalars(scalars.wall_time, scalars.step, values)
            return
        yield from self._settle()
        self._waiting = scalars

    def _settle(self) -> Iterator[RunEvent]:
        said, self._waiting = self._waiting, None
        if said is None:
            return
        values, evaluation, _ = sorted_values({_plain(tag): value for tag, value in said.values.items()})
        if values:
            yield self._event("step", said, {**values, **self._pace(said)})
        if evaluation:
            yield self._event("evaluation", said, dict(evaluation))

    def _pace(self, said: Scalars) -> dict[str, float]:
        before, self._last = self._last, (said.step, said.wall_time)
        if before is None or said.step <= before[0] or said.wall_time <= before[1]:
            return {}
        return {"seconds": said.wall_time - before[1]}

    def _event(self, kind: str, said: Scalars, data: dict[str, float]) -> RunEvent:
        self._seq += 1
        return RunEvent(
            seq=self._seq, t=said.wall_time, source="log", kind=kind, step=max(0, said.step), data=data
        )


def _plain(tag: str) -> str:
    found = _PART_LAST.match(tag)
    return f"{found[2]}/{found[1]}" if found else tag


def event_files(folder: Path, bounds: Bounds = _BOUNDS) -> list[Path]:
    """Return the event files in a folder and those below it. Raises OSError when the folder cannot be listed."""
    with os.scandir(folder):
        pass
    return [*walk(folder, lambda entry: MARK in entry.name and entry.is_file(), bounds)]
