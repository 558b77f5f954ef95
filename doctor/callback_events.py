"""The events that a callback, or ``runner.log``, inside a supervised command writes: whether there are any, and of what."""

from __future__ import annotations

from pathlib import Path

from doctor.run_ends import first_and_last
from runner.events import read_events
from runner.recording import BY_LOOP

_EVALUATION = b'"kind":"evaluation"'
CHUNK_BYTES = 1 << 20


class CallbackEvents:
    """Those of one start: exact where the log is rounded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin = size_of(path)
        self._looked_to = self._begin
        self._by_framework: bool | None = None
        self._found_evaluation = False

    def tells(self) -> bool:
        return size_of(self._path) > self._begin

    def tells_evaluations(self) -> bool:
        """Return whether evaluations come from there too: a framework's callback tells them, a hand-written loop may not."""
        if self._by_framework is None:
            first = next((event for event, _ in read_events(self._path, self._begin)), None)
            self._by_framework = first is not None and first.data.get("told_by") != BY_LOOP["told_by"]
        return self._by_framework or self._has_evaluation()

    def _has_evaluation(self) -> bool:
        """Look into what came since the last look."""
        while not self._found_evaluation and self._looked_to < size_of(self._path):
            with open(self._path, "rb") as file:
                file.seek(max(self._begin, self._looked_to - len(_EVALUATION)))
                content = file.read(CHUNK_BYTES)
                self._looked_to = file.tell()
            self._found_evaluation = _EVALUATION in content
        return self._found_evaluation

    def last_step(self) -> int:
        """Return the last step told; 0: none was."""
        return max((event.step or 0 for event in first_and_last(self._path)), default=0)


def size_of(path: Path) -> int:
    """Return a file's size; of one that is not there, or cannot be looked at, 0."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
