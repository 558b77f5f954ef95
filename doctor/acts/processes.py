"""End one process of the user's own: seen in /proc, by its number and start time, never by its name."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from doctor.acts import Act, Keeper, Kept, Refused
from doctor.model import StopProcess, Text, t
from doctor.probes import Context
from doctor.probes.proc_table import Seen, see

GRACE_S = 10.0
"""Between SIGTERM, on which a training run saves, and SIGKILL."""
_KILL_S = 5.0


class StopProcessAct(Act[StopProcess]):
    def look(self, step: StopProcess, keeper: Keeper) -> Kept:
        seen = self._same(step)
        if seen is None:
            return {"kind": "absent"}
        if seen.uid != os.geteuid():
            raise Refused(
                t("process {pid} belongs to another user: ask them; nothing was done", pid=step.pid)
            )
        if step.pid in (1, os.getpid(), *_ancestors()):
            raise Refused(
                t("process {pid} is what this session itself runs in: it is not ended", pid=step.pid)
            )
        return {"kind": "there"}

    def do(self, step: StopProcess, before: Kept, keeper: Keeper) -> Kept:
        if before["kind"] == "absent":
            return {"kind": "absent"}
        try:
            handle = os.pidfd_open(step.pid)
        except ProcessLookupError:
            return {"kind": "absent"}
        except OSError:  # a kernel or sandbox without pidfd
            return self._by_number(step)
        try:
            if self._same(step) is None:  # the number was given to another process meanwhile
                return {"kind": "absent"}
            return self._end(step, lambda number: signal.pidfd_send_signal(handle, number), lambda wait: _ended(handle, wait))  # fmt: skip
        finally:
            os.close(handle)

    def _by_number(self, step: StopProcess) -> Kept:
        def wait(seconds: float) -> bool:
            end = time.monotonic() + seconds
            while time.monotonic() < end and self._same(step) is not None:
                time.sleep(0.05)
            return self._same(step) is None

        def send(number: int) -> None:
            if self._same(step) is not None:
                os.kill(step.pid, number)

        return self._end(step, send, wait)

    def _end(self, step: StopProcess, send: Callable[[int], None], ended: Callable[[float], bool]) -> Kept:
        for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, _KILL_S)):
            try:
                send(number)
            except ProcessLookupError:
                return {"kind": "absent"}
            if ended(seconds):
                return {"kind": "absent", "signal": int(number)}
        seen = self._same(step)
        raise Refused(
            t("process {pid} did not end (state {state}): it waits in the kernel, only a restart of the instance ends it", pid=step.pid, state=seen.state if seen else "?")
        )  # fmt: skip

    def undo(self, step: StopProcess, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        if after is not None:
            raise Refused(t("a process that was ended cannot be brought back"))

    def cannot_undo(self, step: StopProcess) -> Text | None:
        return t("a process that was ended cannot be brought back")

    def preview(self, step: StopProcess) -> list[str]:
        return [f"kill -TERM {step.pid}    # {step.command}", f"kill -KILL {step.pid}    # {GRACE_S:.0f} s"]

    @staticmethod
    def _same(step: StopProcess) -> Seen | None:
        """Return the process if it is still the one that was seen, and runs."""
        seen = see(Context(), step.pid)
        return seen if seen and seen.start_ticks == step.started_ticks and seen.state not in "ZX" else None


def _ended(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _ancestors() -> list[int]:
    found, pid = [], os.getppid()
    while pid > 1:
        found.append(pid)
        seen = see(Context(), pid)
        pid = seen.parent_pid if seen else 0
    return found
