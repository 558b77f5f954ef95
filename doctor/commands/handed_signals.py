"""Ctrl-C and SIGTERM at a terminal that is attached to a supervised command: handed on to it by way of its supervisor."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from doctor.language import say

if TYPE_CHECKING:
    from doctor.launch import StartedRun
    from doctor.watching import RunWatcher

IMPATIENT = 3
"""So many signals before anybody could answer one: whoever sends them wants out."""


class HandedSignals:
    """The first goes on as it is, each further one a harder one (see :mod:`doctor.stopping`). During the countdown they
    cancel it.

    Entered before the supervisor is started: what comes meanwhile is kept until it is there. It is started with these
    signals blocked, so from then on none is lost, whether it stands already or not.
    """

    def __init__(self) -> None:
        self._started: StartedRun | None = None
        self._watcher: RunWatcher | None = None
        self._before: dict[int, Any] = {}
        self._kept: list[int] = []
        self._count = 0

    def __enter__(self) -> HandedSignals:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def answer_for(self, started: StartedRun, watcher: RunWatcher) -> None:
        """The supervisor is started: what was kept is handed on, and from now on whatever comes."""
        self._started, self._watcher = started, watcher
        while self._kept:
            self._hand_on(started, watcher, self._kept.pop(0))

    @property
    def came(self) -> bool:
        """Somebody has asked the command to stop."""
        return self._count > 0

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._started is not None and self._watcher is not None:
            self._hand_on(self._started, self._watcher, number)
            return
        self._kept.append(number)
        if self._count >= IMPATIENT:
            raise KeyboardInterrupt

    def _hand_on(self, started: StartedRun, watcher: RunWatcher, number: int) -> None:
        """At once, also from the signal's handler: the terminal may be waiting for whoever reads its output."""
        from doctor import service

        if watcher.state.on_finish.get("state") == "waiting":
            service.cancel_on_finish(started.run)
        elif self._count >= IMPATIENT and not started.run.supervisor_pid.exists():
            started.process.kill()
            _say_now(say("its supervisor did not stand yet and was ended"))
        elif started.process.poll() is None:
            started.process.send_signal(number)
            _say_now(say("stopping the command ... (Ctrl-C again: SIGTERM, then SIGKILL)"))


def _say_now(words: str) -> None:
    """Write to stderr past its buffer, which the interrupted code may be in the middle of filling."""
    with suppress(OSError):
        os.write(2, f"doctor: {words}\n".encode("utf-8", "replace"))
