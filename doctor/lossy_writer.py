"""Appends events for a process that must outlive a full disk: what cannot be written is counted, and told once there is room."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from runner.events import EventWriter
from runner.text import Text, t


class LossyWriter:
    """An :class:`runner.events.EventWriter` that raises nothing once it is open."""

    def __init__(self, path: Path, source: str) -> None:
        """Raises OSError when the file cannot be opened."""
        self._writer = EventWriter(path, source)
        self._source = source
        self._lost, self._lost_why = 0, ""

    def write(self, kind: str, **data: Any) -> None:
        try:
            self._writer.write(kind, **plain(data))
            if self._lost:
                lost, self._lost = self._lost, 0
                text = t(
                    "{count} {count:sample|samples} could not be written: {error}",
                    count=lost,
                    error=self._lost_why,
                )
                self._writer.write("note", level="warn", text=plain(text))
        except OSError as error:
            self._lost += 1
            if self._lost == 1:
                self._lost_why = error.strerror or str(error)
                self.complain(f"{self._writer.path}: {error}")

    def note(self, text: Text, level: str, file: str = "") -> None:
        self.write("note", level=level, text=text, **({"file": file} if file else {}))

    def complain(self, line: str) -> None:
        complain(self._source, line)

    def close(self) -> None:
        self._writer.close()


def complain(source: str, line: str) -> None:
    """Say a line on stderr, which may lie on the same full disk."""
    with contextlib.suppress(OSError):
        print(f"{source}:", line, file=sys.stderr, flush=True)  # noqa: T201


def plain(value: Any) -> Any:
    """Return ``value`` with every Text as ``{"msgid", "params"}``."""
    if isinstance(value, Text):
        return {"msgid": value.msgid, "params": value.params}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
