"""SIGTERM, SIGINT and SIGHUP as a flag, read between steps; a second SIGINT leaves at once. What whoever started us had
ignored (nohup: SIGHUP) stays ignored."""

from __future__ import annotations

import os
import signal
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXIT_SAVED = 143
EXIT_AT_ONCE = 130


class StopRequest:
    """Whether somebody asked the run to stop, and with which signal."""

    def __init__(self) -> None:
        self.signal_name = ""
        self._interrupts = 0

    def __bool__(self) -> bool:
        return bool(self.signal_name)

    @classmethod
    def install(cls) -> StopRequest:
        """Take over the stop signals of this process; a flag is all that the handler sets."""
        stop = cls()
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, stop._on_signal)
        return stop

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                os._exit(EXIT_AT_ONCE)
        self.signal_name = self.signal_name or signal.Signals(number).name


def ignore_in_worker() -> None:
    """Let the trainer alone answer stop signals: a loader worker that dies of one takes the step with it."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
