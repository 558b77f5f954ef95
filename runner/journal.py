"""What the trainer tells the world: events, and a plain line on stdout for the log. Telling never stops a
run."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from runner.events import EventWriter
from runner.text import Text

LOG_LINE_EVERY_S = 5.0


class Journal:
    """Writes events; where the disk is full an event is lost, counted, and training goes on."""

    def __init__(self, writer: EventWriter, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._clock = clock
        self._last_line = 0.0
        self.lost = 0
        self.listener: Callable[[str, int | None, dict[str, Any]], None] | None = None
        """Told of every event as well."""

    def write(self, kind: str, step: int | None = None, **data: Any) -> None:
        try:
            self._writer.write(kind, step, **data)
        except OSError as error:
            self.lost += 1
            if self.lost == 1:
                self.say(f"an event could not be written: {error}")
        if self.listener is not None and kind != "note":
            self.listener(kind, step, data)

    @property
    def is_deleted(self) -> bool:
        """Has the file of the events been removed, and the run directory with it?"""
        return self._writer.is_deleted

    def note(self, level: str, text: Text, step: int | None = None) -> None:
        """Write a note (``info``, ``warn`` or ``fail``) and say it in the log."""
        self.write("note", step, level=level, text=msgspec.to_builtins(text))
        self.say(f"{level}: {text}")

    def preparing(self, data: dict[str, Any]) -> None:
        """Write and say how far the preparation of the data is."""
        self.write("preparing", None, **data)
        eta = data.get("eta_seconds")
        left = f", {eta:.0f} s left" if eta else ""
        self.say(
            f"{data['what']} {data['part']}: {data['rows']} of {data['rows_total']} rows, "
            f"{data['rows_per_s']:.0f} rows/s, {data['characters_per_s'] / 1e6:.2f} MB/s{left}"
        )

    def say(self, line: str) -> None:
        """Write a line to the log; where that cannot be written (the disk is full), training goes on."""
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{line}\n")

    def progress(self, step: int, total: int, data: dict[str, Any]) -> None:
        """Say how far the run is, every few seconds."""
        now = self._clock()
        if now - self._last_line >= LOG_LINE_EVERY_S or step == total:
            self._last_line = now
            self.say(
                f"step {step}/{total} loss {data['loss']:.4f} lr {data['lr']:.3g} norm {data['grad_norm']:.3f}"
            )


class RankJournal(Journal):
    """Of a rank that is not the first: how it keeps pace and what it meets; what all have in common rank 0 tells."""

    KINDS = ("run-started", "step", "note", "run-finished")

    def __init__(self, writer: EventWriter, rank: int) -> None:
        super().__init__(writer)
        self.rank = rank

    def write(self, kind: str, step: int | None = None, **data: Any) -> None:
        if kind in self.KINDS and data.get("level") != "info":
            super().write(kind, step, **data)

    def note(self, level: str, text: Text, step: int | None = None) -> None:
        if level != "info":
            super().note(level, text, step)

    def say(self, line: str) -> None:
        if self.lost or line.startswith(("warn: ", "fail: ")):
            super().say(f"[rank {self.rank}] {line}")
