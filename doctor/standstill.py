"""Where a silent trainer stands, kept in the run: the kernel's word on each process, Python's stacks, native frames at last.

Native frames are asked for only of a process that has stood for long: reading them stops it for a moment, which nothing else
here does.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from doctor.probes.kernel_wait import kernel_wait
from doctor.probes.process_tree import tree_of
from doctor.pyspy import dump
from runner.dumps import where_in
from runner.rundir import RunDir
from runner.watchdog import dump_name

PROCESSES = 16
OWN_DUMPS_BYTES = 256 << 10
NATIVE_TIMEOUT_S = 20.0


class Standstill:
    """Of one trainer and the processes below it."""

    def __init__(self, run: RunDir, pid: int) -> None:
        self.run, self.pid = run, pid
        self._file = ""
        self._own_begin = self._own_size = self._size_of_own()
        """What stands in the trainer's own file is of an earlier start up to here."""

    def begins(self) -> dict[str, Any]:
        """Keep where every thread stands now; return the data of a ``standing`` event. Raises OSError when it cannot be written."""
        waits = waits_of(self.pid)
        text, trouble = dump(self.pid)
        path = self.run.stacks / f"silent-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            "\n".join([*map(_line, waits), "", text or str(trouble.why if trouble else ""), ""]), "utf-8"
        )
        self._file = str(path.relative_to(self.run.path))
        return {"file": self._file, "waits": waits, **self._own()}

    def goes_deeper(self, trainer: int) -> None:
        """Add the native frames of a process that sleeps to what was kept. Raises OSError."""
        wait = kernel_wait(trainer)
        if wait is None or wait.state != "S" or not self._file:
            return
        text, _ = dump(trainer, NATIVE_TIMEOUT_S, with_children=False, native=True)
        if text:
            with open(self.run.path / self._file, "a", encoding="utf-8") as file:
                file.write(f"\nwith native frames:\n\n{text}")

    def own_dump(self) -> dict[str, Any] | None:
        """Return what the trainer's own watchdog has written since the last look."""
        size = self._size_of_own()
        if size == self._own_size:
            return None
        self._own_size = size
        return {"file": self._file or str(self._own_path.relative_to(self.run.path)), **self._own()}

    @property
    def _own_path(self) -> Path:
        return self.run.stacks / dump_name(0)

    def _size_of_own(self) -> int:
        try:
            return self._own_path.stat().st_size
        except OSError:
            return 0

    def _own(self) -> dict[str, Any]:
        try:
            with open(self._own_path, "rb") as file:
                file.seek(max(self._own_begin, file.seek(0, 2) - OWN_DUMPS_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return {}
        place = where_in(text)
        return {"place": place, "dumps": text.count("Timeout (")} if place else {}


def waits_of(pid: int) -> list[dict[str, Any]]:
    """Return what a process and those below it wait for in the kernel, as a ``standing`` event has it."""
    waits = [wait for one in list(tree_of(pid))[:PROCESSES] if (wait := kernel_wait(one)) is not None]
    return [{"pid": wait.pid, "state": wait.state, "call": wait.words} for wait in waits]


def _line(wait: dict[str, Any]) -> str:
    return f"process {wait['pid']}: state {wait['state']}" + (f", {wait['call']}" if wait["call"] else "")
