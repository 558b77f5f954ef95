"""How far behind the terminal is: nothing more is drawn by itself before what was sent has been shown.

What lies in the buffers of a tunnel cannot be seen from here, so the terminal is asked where its cursor is (DSR 6) behind each
picture, and its answer says that it got there. On a line of 3 kB/s a key would otherwise wait for half a minute of pictures.
"""

from __future__ import annotations

from collections.abc import Callable

WHERE_IS_THE_CURSOR = "\x1b[6n"
MUTE_AFTER_S = 5.0
"""A terminal that has never answered for so long has no answer, and is asked no more."""
LOST_AFTER_S = 60.0
"""One that has answered before: its answer was lost (a line that broke, another terminal attached)."""


class Line:
    """One terminal. ``send`` writes to it; None: there is none that could answer."""

    def __init__(self, send: Callable[[str], None] | None, clock: Callable[[], float]) -> None:
        self._send, self._clock = send, clock
        self._asked_at: float | None = None
        self._has_answered = False

    def ask(self) -> None:
        """Ask, behind what was just drawn, unless an answer is still due."""
        if self._send is not None and self._asked_at is None:
            self._asked_at = self._clock()
            self._send(WHERE_IS_THE_CURSOR)

    def answered(self) -> None:
        """The terminal has shown what was sent before the question."""
        self._asked_at, self._has_answered = None, True

    def is_free(self) -> bool:
        """Return whether to draw anew: all was shown, or no answer will come."""
        if self._asked_at is None:
            return True
        waited = self._clock() - self._asked_at
        if not self._has_answered and waited >= MUTE_AFTER_S:
            self._send, self._asked_at = None, None
        elif waited >= LOST_AFTER_S:
            self._asked_at = None
        return self._asked_at is None
