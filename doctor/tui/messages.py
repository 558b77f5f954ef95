"""What workers tell screens. A worker posts one of these; the handler of its screen owns the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text as Styled
from textual.message import Message

from doctor.tui.fixing import Cured, FixPlan
from doctor.tui.source import Examination, PlanRow
from doctor.tui.view import RunView

if TYPE_CHECKING:
    from doctor.snapshots.diff import Diff


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


class PastRead(Message):
    """The run as it was at wall time ``at``."""

    def __init__(self, at: float, view: RunView) -> None:
        super().__init__()
        self.at = at
        self.view = view


class Listed(Message):
    """What a list holds: the rows of the screen that asked."""

    def __init__(self, rows: Sequence[Any]) -> None:
        super().__init__()
        self.rows = rows


class Glanced(Message):
    """A run of the list was looked at; ``seen`` is a sentence where it could not be."""

    def __init__(self, key: str, seen: RunView | str) -> None:
        super().__init__()
        self.key = key
        self.seen = seen


class Planned(Message):
    """A profile became a plan, with its reasons."""

    def __init__(self, plan: PlanRow) -> None:
        super().__init__()
        self.plan = plan


class RunStarted(Message):
    """A run was started, or ``trouble`` says why not."""

    def __init__(self, name: str, trouble: str = "") -> None:
        super().__init__()
        self.name = name
        self.trouble = trouble


class Answered(Message):
    """What came of an act (stop, resume), in words to show. The run's own events say what it made of it."""

    def __init__(self, words: Styled) -> None:
        super().__init__()
        self.words = words


class FixPlanned(Message):
    """What could be done about a finding; None: nothing by us."""

    def __init__(self, plan: FixPlan | None) -> None:
        super().__init__()
        self.plan = plan


class FixTold(Message):
    """One thing that happened to a step, in words."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words


class FixDone(Message):
    """A fix or an undo has come to its end."""

    def __init__(self, cured: Cured) -> None:
        super().__init__()
        self.cured = cured


class Differed(Message):
    """Two snapshots were held against each other."""

    def __init__(self, found: Diff) -> None:
        super().__init__()
        self.found = found


class LinesRead(Message):
    """What a snapshot holds, or how two runs compare: lines to show under ``key``."""

    def __init__(self, key: str, lines: Sequence[str]) -> None:
        super().__init__()
        self.key = key
        self.lines = lines


class Trouble(Message):
    """What was asked could not be had. ``words`` is a sentence in the user's language."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
