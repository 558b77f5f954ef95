"""SIGTERM, SIGINT, SIGHUP and what batch systems warn with (USR1, USR2) as a flag, read between steps; as an end at once where
there is nothing to save, and at a second SIGINT. What whoever started us had ignored (nohup: SIGHUP) stays ignored."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
EXIT_SAVED = 143
EXIT_AT_ONCE = 130


class Stopped(BaseException):
    """Somebody asked the run to stop before there was anything to save. No library is to take it for an error of its own."""


class StopRequest:
    """Whether somebody asked the run to stop, and with which signal."""

    def __init__(self) -> None:
        self.signal_name = ""
        self._interrupts = 0
        self._leaves_at_once = False

    def __bool__(self) -> bool:
        return bool(self.signal_name)

    @classmethod
    def install(cls) -> StopRequest:
        """Take over the stop signals of this process."""
        stop = cls()
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, stop._on_signal)
        return stop

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Leave the block as soon as a stop is asked for: a download or a model in the making is nothing to save.

        Raises:
            Stopped: out of whatever the main thread does then.
        """
        self._leaves_at_once = True
        try:
            if self:
                raise Stopped
            yield
        finally:
            self._leaves_at_once = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                os._exit(EXIT_AT_ONCE)
        self.signal_name = self.signal_name or signal.Signals(number).name
        if self._leaves_at_once:
            raise Stopped


def ignore_in_worker() -> None:
    """Let the trainer alone answer stop signals: a loader worker that dies of one takes the step with it."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
