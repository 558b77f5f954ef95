"""What workers tell screens. A worker posts one of these; the handler of its screen owns the state."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text as Styled
from textual.message import Message

from doctor.tui.source import Examination, PlanRow, ProfileRow, RunRow
from doctor.tui.view import RunView


class Examined(Message):
    """The machine was read and judged."""

    def __init__(self, examination: Examination) -> None:
        super().__init__()
        self.examination = examination


class RunRead(Message):
    """What came since the last poll is folded in."""

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self.view = view


class RunsListed(Message):
    def __init__(self, rows: Sequence[RunRow]) -> None:
        super().__init__()
        self.rows = rows


class ProfilesListed(Message):
    def __init__(self, rows: Sequence[ProfileRow]) -> None:
        super().__init__()
        self.rows = rows


class Planned(Message):
    """A profile became a plan, with its reasons."""

    def __init__(self, plan: PlanRow) -> None:
        super().__init__()
        self.plan = plan


class RunStarted(Message):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class Answered(Message):
    """What came of an act (stop, resume), in words to show. The run's own events say what it made of it."""

    def __init__(self, words: Styled) -> None:
        super().__init__()
        self.words = words


class Trouble(Message):
    """What was asked could not be had. ``words`` is a sentence in the user's language."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
