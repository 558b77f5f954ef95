"""Follows the log of a supervised command and writes what it tells as events, unless a callback inside the command does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import BinaryIO

from doctor.callback_events import CallbackEvents, size_of
from doctor.ended import Note
from doctor.log_progress import LogProgress, Progress
from runner.rundir import RunDir
from runner.text import t

OUTPUT_EVERY_S = 10.0
"""Between two words that the log has grown, where it tells no steps."""
A_LOOK_BYTES = 128 << 10
"""Of the log at one look: reading more than that five times a second would take a core from the training."""
BEHIND_BYTES = 1 << 20
"""A log that grows faster is not read whole: so much of its end is."""

Write = Callable[..., None]


class LogReader:
    """Reads ``trainer.log`` from its present end; what cannot be read ends the reading, never the supervision."""

    def __init__(self, run: RunDir, write: Write, note: Callable[[Note], None]) -> None:
        self.steps = 0
        """The highest step that the log told."""
        self._event, self._note = write, note
        self._path = run.trainer_log
        self.callback = CallbackEvents(run.events / "trainer-0.jsonl")
        self._offset = size_of(self._path)
        self._progress = LogProgress(time.monotonic)
        self._told_at = time.monotonic()
        self._passed_over = False
        self._gave_up = False

    def read(self) -> bool:
        """Read what is new, at most some KB; return whether there was any. A log that was cut short by its writer is
        read from its new end on, one that grows too fast near its end."""
        if self._gave_up:
            return False
        try:
            return self._read()
        except Exception as error:  # whatever it is: the command runs, and its end must still be told
            self._gave_up = True
            why = f"{type(error).__name__}: {error}"
            self._note(Note("warn", t("trainer.log is not read further: {error}. The command goes on.", error=why)))  # fmt: skip
            return False

    def _read(self) -> bool:
        size = size_of(self._path)
        if size <= self._offset:
            self._offset = size
            return False
        with open(self._path, "rb") as file:
            if size - self._offset > BEHIND_BYTES:
                self._pass_over(size - BEHIND_BYTES, file)
            file.seek(self._offset)
            content = file.read(A_LOOK_BYTES)
        self._offset += len(content)
        self._write(self._progress.feed(content))
        if time.monotonic() - self._told_at >= OUTPUT_EVERY_S:
            self._told_at = time.monotonic()
            self._event("output", None, bytes=self._offset)
        return True

    def _pass_over(self, offset: int, file: BinaryIO) -> None:
        """Go on with the first line that begins after ``offset``, and say so once."""
        file.seek(offset)
        line = file.readline(A_LOOK_BYTES)
        self._offset = offset + len(line)
        self._progress.passed_over()
        if not self._passed_over:
            self._passed_over = True
            self._note(Note("info", t("The command writes faster than its output is read: steps told in parts of it are not counted. "
                                      "All of it is in trainer.log.")))  # fmt: skip

    def told_elsewhere(self) -> bool:
        """Return whether steps are told: in the log, or by a callback."""
        return self.steps > 0 or self.callback.tells()

    def end(self) -> None:
        """Read the rest; what an unended last line says counts."""
        while self.read():
            continue
        if not self._gave_up:
            self._write(self._progress.end())

    def _write(self, told: Iterable[Progress]) -> None:
        for progress in told:
            step = progress.step
            if self.callback.tells():
                if progress.kind != "evaluation" or self.callback.tells_evaluations():
                    continue
                step = self.callback.last_step()
            self._told_at = time.monotonic()
            self.steps = max(self.steps, step)
            self._event(progress.kind, step, **progress.data)
