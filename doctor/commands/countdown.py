"""The seconds before ``--on-finish`` runs, at the terminal that is attached: counted on stderr, cancelled by any key."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from typing import TYPE_CHECKING, Any

from doctor.commands.talk import tell
from doctor.language import say
from doctor.render.on_finish_text import on_finish_words
from runner.strings import printable
from runner.text import t

if TYPE_CHECKING:
    from doctor.launch import StartedRun


class Countdown:
    """One countdown; where no key can be read here, it is said how else it is cancelled."""

    def __init__(self, started: StartedRun, on_finish: dict[str, Any]) -> None:
        self._run = started.run
        self._first = on_finish
        self._at = float(on_finish.get("at") or 0.0)
        self._command = printable(str(on_finish["command"]))
        self._terminal: list[Any] | None = None
        self._shown = -1
        self._told = ""

    def __enter__(self) -> Countdown:
        if self._first.get("state") != "waiting":
            return self
        self._told = "waiting"
        if sys.stderr.isatty() and _in_foreground():
            self._terminal = termios.tcgetattr(sys.stdin.fileno())
            tty.setcbreak(sys.stdin.fileno())
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # keys from before are no answer
        else:
            tell(on_finish_words(self._first, time.time()))
        return self

    def __exit__(self, *_: object) -> None:
        self._end_line()
        if self._terminal is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._terminal)

    def _left(self) -> int:
        return max(0, round(self._at - time.time()))

    def look(self, on_finish: dict[str, Any]) -> None:
        """Count on, cancel at a key, and say each turn once."""
        state = str(on_finish.get("state"))
        if state != "waiting":
            self._end_line()
            if state not in (self._told, "done"):  # how it went, a note says
                tell(on_finish_words(on_finish, time.time()))
            self._told = state
            return
        if self._terminal is None:
            return
        if self._left() != self._shown:
            self._shown = self._left()
            words = say(
                t("In {seconds} s: {command}   (any key cancels)", seconds=self._shown, command=self._command)
            )
            sys.stderr.write(f"\r{words}\x1b[K")
            sys.stderr.flush()
        if select.select([sys.stdin], [], [], 0)[0] and not self._run.cancel_on_finish.exists():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            from doctor import service

            service.cancel_on_finish(self._run)

    def _end_line(self) -> None:
        if self._shown >= 0:
            self._shown = -1
            sys.stderr.write("\n")


def _in_foreground() -> bool:
    """Return whether keys of the terminal come to us; a job in the background that asked for them would be stopped."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # stdin is no terminal, or not ours
        return False
