"""An exception as one sentence for the person at the screen."""

from __future__ import annotations

from doctor.language import say
from doctor.tui.words import words_of
from runner.strings import printable
from runner.text import Text, t


def sentence(error: BaseException) -> str:
    """Return what went wrong: the error's own ``text`` (LaunchError, PlanError), its problems, or its words."""
    problems = getattr(error, "problems", None)
    if problems:
        return "\n".join(words_of(problem) for problem in problems)
    text = getattr(error, "text", None) or getattr(error, "problem", None)
    if text is not None:
        return words_of(text) if isinstance(text, Text) else printable(str(text))
    if isinstance(error, FileNotFoundError):
        name = printable(str(error.filename or ""))
        return say(t("{name}: {what}", name=name, what=printable(error.strerror or say("it is not there"))))
    return say(t("{kind}: {what}", kind=type(error).__name__, what=printable(str(error))))
