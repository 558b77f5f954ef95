"""Why memory could not be foretold or measured, as errors with their sentence; apart, so that who only foretells loads no more."""

from __future__ import annotations

from runner.text import Text


class NoTrace(Exception):  # noqa: N818 - it is what it says
    """The model could not be walked. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class CannotMeasure(Exception):  # noqa: N818 - it is what it says
    """No step could be run. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class OutOfTime(Exception):  # noqa: N818 - it is what it says
    """The time given is used up; what was measured before it stands."""
