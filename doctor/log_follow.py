"""A log that somebody else writes, followed from its beginning: what it tells of a training, as events."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from doctor.log_progress import LogProgress, Progress
from runner.events import RunEvent

READ_BYTES = 1 << 20
MOST_BYTES = 4 << 20
"""At one look: of a longer log, and of one that grows faster, only the end is read. A megabyte takes up to half a second."""
_LONGEST_LINE = 1 << 16


class LogFollower:
    """Gives ``step`` and ``evaluation`` events with the source ``log``. What stood there before us carries no step times."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Raises OSError when the log cannot be read."""
        self.path = path
        self._clock = clock
        self._progress = LogProgress(time.monotonic)
        size = path.stat().st_size
        self._history_end = size
        self._offset = 0
        self._seq = 0
        with open(path, "rb") as file:  # permission is learned now, not on the first look
            self._inode = os.fstat(file.fileno()).st_ino

    def read(self) -> Iterator[RunEvent]:
        """Yield what came since the last call. A log that was cut (rotated, written anew) is read from its beginning."""
        with open(self.path, "rb") as file:
            inode, before = os.fstat(file.fileno()).st_ino, self._inode
            self._inode = inode
            if file.seek(0, 2) < self._offset or inode != before:
                self._progress, self._offset, self._history_end = LogProgress(time.monotonic), 0, 0
            self._pass_over(file)
            while content := file.read(READ_BYTES):
                is_history = self._offset < self._history_end
                self._offset += len(content)
                for told in self._progress.feed(content):
                    yield self._event(told, is_history)

    def _pass_over(self, file: BinaryIO) -> None:
        """Go to where reading begins: in a log too long for one look, behind the first line end of what is left of it."""
        begin = file.seek(0, 2) - MOST_BYTES
        if begin <= self._offset:
            file.seek(self._offset)
            return
        file.seek(begin)
        file.readline(_LONGEST_LINE)
        self._offset = file.tell()
        self._progress.passed_over()

    def _event(self, told: Progress, is_history: bool) -> RunEvent:
        data = {name: value for name, value in told.data.items() if not (is_history and name == "seconds")}
        event = RunEvent(
            seq=self._seq, t=self._clock(), source="log", kind=told.kind, step=told.step, data=data
        )
        self._seq += 1
        return event


def log_of(pid: int) -> Path | None:
    """Return the file that a process writes its output to; None: a terminal, a pipe, or nobody may look."""
    for stream in (1, 2):
        try:
            path = Path(f"/proc/{pid}/fd/{stream}").resolve(strict=True)
            if path.is_file() and path.stat().st_size:
                return path
        except OSError:  # a pipe has no path; another user's process cannot be looked into
            continue
    return None


def last_lines(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log; none where it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 64 * 1024))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    # A progress bar rewrites its line: only what stands after the last carriage return is left of it.
    kept = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").splitlines() if line.strip()]
    return kept[-lines:]
