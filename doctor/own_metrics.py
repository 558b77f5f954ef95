"""What a script's own loggers write, where neither its output nor a callback tells its steps: TensorBoard's event files and
Lightning's ``metrics.csv``."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from doctor.log_values import sorted_values
from doctor.own_files import files_below
from doctor.tensorboard_follow import MARK, TensorboardFollower
from runner.command_plan import CommandPlan
from runner.events import RunEvent
from runner.rundir import RunDir

SEARCH_AFTER_S = 10.0
LONGEST_SEARCH_S = 600.0
"""Between two searches: each takes twice as long to come as the one before, for a script that writes no such file."""
READ_EVERY_S = 2.0
CSV = "metrics.csv"
LIGHTNING = "lightning_logs"

Write = Callable[..., None]


class Follower(Protocol):
    def read(self) -> Iterator[RunEvent]: ...


class CsvFollower:
    """Lightning's ``metrics.csv``: it is written anew when a column is added, so it is read whole and told from where it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = 0

    def read(self) -> Iterator[RunEvent]:
        """Yield what came since the last call. Raises OSError."""
        with open(self._path, encoding="utf-8", newline="") as file:
            content = file.read()
        whole = content[: content.rfind("\n") + 1]
        rows = list(csv.DictReader(whole.splitlines()))
        for row in rows[self._rows :]:
            yield from _events(row)
        self._rows = len(rows)


def _events(row: dict[str, str]) -> Iterator[RunEvent]:
    values, evaluation, step = sorted_values({name: value for name, value in row.items() if name and value})
    for kind, data in (("step", values), ("evaluation", evaluation)):
        if data and step is not None:
            yield RunEvent(seq=0, t=time.time(), source="log", kind=kind, step=step, data=dict(data))


class OwnMetrics:
    """Looks now and then for such a file of this start, and follows the newest."""

    def __init__(self, run: RunDir, plan: CommandPlan, write: Write) -> None:
        self.steps = 0
        self._folder, self._argv, self._run = Path(plan.folder), plan.words, run
        self._write = write
        self._begun_ns = time.time_ns()
        self._search_s = SEARCH_AFTER_S
        self._next_look = time.monotonic() + SEARCH_AFTER_S
        self._follower: Follower | None = None
        self._first_step = 0
        """Lightning counts from 0, its step 49 is the fiftieth: then 1."""

    def look(self, is_last: bool = False) -> None:
        """Search or read, if it is time to; ``is_last``: once more, whatever the time is."""
        now = time.monotonic()
        if now < self._next_look and not is_last:
            return
        try:
            self._follower = self._follower or self._find()
            for _ in range(
                2 if is_last else 1
            ):  # what waits for more of its step is told by a look that finds none
                self._tell()
        except (OSError, ValueError):  # removed or rotated meanwhile: looked for anew
            self._follower = None
        if self._follower is None:
            self._search_s = min(LONGEST_SEARCH_S, 2 * self._search_s)
        self._next_look = time.monotonic() + (READ_EVERY_S if self._follower else self._search_s)

    def _tell(self) -> None:
        for event in self._follower.read() if self._follower else ():
            step = (event.step or 0) + self._first_step
            self.steps = max(self.steps, step)
            self._write(event.kind, step, **event.data)

    def _find(self) -> Follower | None:
        found = [*files_below(self._folder, self._argv, _is_log)]
        new = [path for path in found if self._is_of_this_start(path)]
        if not new:
            return None
        newest = max(new, key=lambda path: path.stat().st_mtime_ns)
        self._first_step = int(newest.name == CSV or LIGHTNING in newest.parts)
        return CsvFollower(newest) if newest.name == CSV else TensorboardFollower(newest)

    def _is_of_this_start(self, path: Path) -> bool:
        return self._run.path not in path.parents and path.stat().st_mtime_ns >= self._begun_ns


def _is_log(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) and (MARK in entry.name or entry.name == CSV)
