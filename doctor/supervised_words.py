"""What a supervisor writes of its command: events, notes, and how a start ended, explained from the end of its log."""

from __future__ import annotations

from typing import Any

import msgspec

from doctor.callback_events import size_of
from doctor.ended import Ended, Note, notes_of
from doctor.lossy_writer import complain
from doctor.machine import load_snapshot
from doctor.model import Snapshot
from runner.events import EventWriter
from runner.rundir import RunDir
from runner.text import t

TAIL_BYTES = 64 << 10


class SupervisedWords:
    """Writes ``events/trainer-log.jsonl``; whatever cannot be written stops nothing."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self.writer = EventWriter(run.events / "trainer-log.jsonl", "log")

    def explain(self, ended: Ended, tail: str, lines_before: int) -> None:
        """Keep how a start failed, explained against the machine of its snapshot, as notes."""
        try:
            for note in notes_of(ended, tail, lines_before, self._snapshot()):
                self.note(note)
        except (
            Exception
        ) as error:  # whatever it is: the run's last word and what follows it must still happen
            self.note(
                Note(
                    "warn",
                    t("the end could not be explained: {error}", error=f"{type(error).__name__}: {error}"),
                )
            )

    def _snapshot(self) -> Snapshot | None:
        try:
            return load_snapshot(self._run.snapshot)
        except (OSError, ValueError) as error:
            complain("supervisor", f"{self._run.snapshot}: {error}")
            return None

    def log_tail(self, begin: int) -> tuple[str, int]:
        """Return the end of what this start wrote, and how many lines of the log stand before it."""
        lines = 0
        try:
            with open(self._run.trainer_log, "rb") as file:
                start = max(begin, size_of(self._run.trainer_log) - TAIL_BYTES)
                while file.tell() < start:
                    lines += file.read(min(1 << 20, start - file.tell())).count(b"\n")
                text = file.read().decode("utf-8", "replace")
        except OSError as error:
            complain("supervisor", f"{self._run.trainer_log}: {error}")
            return "", 0
        return text.replace("\r\n", "\n").replace("\r", "\n"), lines

    def note(self, note: Note) -> None:
        self.write("note", None, level=note.level, text=msgspec.to_builtins(note.text), **note.data)

    def write(self, kind: str, step: int | None, **data: Any) -> None:
        """Append one event; a full disk loses it and stops nothing."""
        try:
            self.writer.write(kind, step, **data)
        except OSError as error:
            complain("supervisor", f"{self.writer.path}: {error}")
