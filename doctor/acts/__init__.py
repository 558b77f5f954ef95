"""What ``apply`` does, one kind of step a file. Each act looks first, does, and knows its way back.

An act is asked in this order: ``look`` (what is there now; refuses what may not be done; keeps bytes), then the entry is
written to the journal, then ``do``. ``undo`` is also given what was cut off in the middle (``after`` is None then), and may
be cut off itself: each can be begun again.
"""

from __future__ import annotations

import importlib
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from doctor.journal import Journal
from doctor.model import (
    AddLine,
    AskUrl,
    InstallPackages,
    JournalEntry,
    MovePath,
    RecodeFile,
    RemovePath,
    Run,
    SetVariable,
    Step,
    StopProcess,
    Text,
    WriteFile,
)
from runner.strings import unescape

Kept = dict[str, str | int | None]
"""What an entry holds of before or after."""

S = TypeVar("S", bound=Step)


class Refused(Exception):  # noqa: N818 - it is what it says
    """A step cannot be done, or not be taken back. ``text`` says why, and that nothing was lost."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


@dataclass
class Keeper:
    """Where one entry keeps what was there before."""

    journal: Journal
    entry_id: str
    environ: dict[str, str] = field(default_factory=dict)
    """The variables that the steps of this change have set so far, for what is started after them."""
    resumed: bool = False
    """What is undone was cut off before, so that a state in between is no change of the person's."""

    def keep(self, name: str, content: bytes) -> str:
        return self.journal.keep(self.entry_id, name, content)

    def new_name(self) -> str:
        """Return a name for what is put aside, that no other journal's entry has."""
        return f"{self.entry_id}-{secrets.token_hex(4)}"

    @property
    def folder(self) -> Path:
        return self.journal.kept(self.entry_id)


def path_of(text: str) -> Path:
    """Return the path that a step names: odd bytes in it are escaped there (see runner.strings.printable)."""
    return Path(unescape(text))


class Act(ABC, Generic[S]):
    """One kind of step."""

    @abstractmethod
    def look(self, step: S, keeper: Keeper) -> Kept:
        """Return what is there now. Raises Refused, OSError: nothing was done."""

    @abstractmethod
    def do(self, step: S, before: Kept, keeper: Keeper) -> Kept:
        """Do it and return what is there now. Raises Refused, OSError."""

    @abstractmethod
    def undo(self, step: S, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        """Put back what was there. Raises Refused where it changed since, OSError."""

    @abstractmethod
    def preview(self, step: S) -> list[str]:
        """Return the exact commands, or the difference to what is there, as lines. Reads, never writes."""

    def sketch(self, step: S) -> list[str]:
        """Return the preview for a machine that is only known from a file: this one is neither read nor asked."""
        return self.preview(step)

    def forget(self, step: S, before: Kept, keeper: Keeper) -> None:
        """Free what is kept outside the journal for the way back. Raises OSError."""

    def cannot_undo(self, step: S) -> Text | None:
        """Return why this step has no way back; None: it has one."""
        return None


# kind of step -> (module, class); imported when such a step is met
_ACTS: dict[type, tuple[str, str]] = {
    WriteFile: ("files", "WriteFileAct"),
    SetVariable: ("files", "SetVariableAct"),
    AddLine: ("files", "AddLineAct"),
    RecodeFile: ("recode", "RecodeFileAct"),
    MovePath: ("move", "MovePathAct"),
    RemovePath: ("remove", "RemovePathAct"),
    StopProcess: ("processes", "StopProcessAct"),
    Run: ("commands", "RunAct"),
    AskUrl: ("commands", "AskUrlAct"),
    InstallPackages: ("packages", "InstallPackagesAct"),
}


def act_for(step: S) -> Act[S]:
    """Return what does ``step``."""
    module, name = _ACTS[type(step)]
    act: Act[S] = getattr(importlib.import_module(f"doctor.acts.{module}"), name)()
    return act


def way_back(entry: JournalEntry) -> Text | None:
    """Return why ``entry`` cannot be undone; None: it can."""
    return act_for(entry.step).cannot_undo(entry.step)
