"""What a command left behind: processes of its own that run on after it has ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from doctor.probes.marked_processes import processes_with
from doctor.probes.process_tree import is_alive
from runner.rundir import RunDir

VARIABLE = "DOCTOR_RUN_DIR"
"""Every process below a supervised command has it, with the run's path."""
GRACE_S = 10.0
LOOK_EVERY_S = 0.3


class Leftovers:
    """The processes of one run's command that still run; of one process group only, where it is given."""

    def __init__(self, run: RunDir, group: int | None = None) -> None:
        self._path, self._group = str(run.path), group

    def pids(self) -> list[int]:
        return [pid for pid, _ in self._found()]

    def _found(self) -> Iterator[tuple[int, int]]:
        for pid, start_ticks in processes_with(VARIABLE, self._path):
            if self._group is None or _group_of(pid) == self._group:
                yield pid, start_ticks

    def wait(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Wait until none is left; return whether that is so."""
        end = time.monotonic() + seconds
        while self.pids():
            if time.monotonic() >= end or cancelled():
                return False
            time.sleep(LOOK_EVERY_S)
        return True

    def end(self) -> None:
        """Send SIGTERM, and after :data:`GRACE_S` SIGKILL."""
        self.send(signal.SIGTERM)
        self.wait(GRACE_S)
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Signal each; a group as a whole, since a process may have overwritten its environment (``setproctitle``)."""
        if self._group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)
            return
        for pid, start_ticks in list(self._found()):
            if is_alive(pid, start_ticks):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
