"""What a fix does, step by step, and the journal that takes it back."""

from __future__ import annotations

from typing import Literal

from doctor.model.readings import Record
from runner.text import Text


class Run(Record, frozen=True, tag="run"):
    argv: tuple[str, ...]
    undo: tuple[str, ...] | None = None
    """The command that takes it back; None: cannot be undone, and says so."""


class WriteFile(Record, frozen=True, tag="write-file"):
    path: str
    content: str
    mode: int = 0o644


class MovePath(Record, frozen=True, tag="move-path"):
    source: str
    target: str
    leave_link: bool = True


class SetVariable(Record, frozen=True, tag="set-variable"):
    """A line in the managed block of a file that the user sources; ``value`` None removes the variable."""

    name: str
    value: str | None
    file: str


class StopProcess(Record, frozen=True, tag="stop-process"):
    pid: int
    started_ticks: int
    command: str


class AddLine(Record, frozen=True, tag="add-line"):
    """One line at the end of a file, once; the file is made where there is none."""

    path: str
    line: str


class RecodeFile(Record, frozen=True, tag="recode-file"):
    """A text file written anew as UTF-8 without a byte order mark; the original stays under ``kept``."""

    path: str
    encoding: str
    """What it is in now, as Python names it: gb18030, utf-8-sig, utf-16."""
    kept: str


class RemovePath(Record, frozen=True, tag="remove-path"):
    """A file or folder taken away: put aside beside its place, or (a cache that fills itself again) deleted."""

    path: str
    keep: bool = True


class InstallPackages(Record, frozen=True, tag="install-packages"):
    """Packages taken out of, and put into, the examined interpreter by its own installer."""

    python: str
    requirements: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    """Distributions taken out first."""
    frozen: tuple[str, ...] = ()
    """Constraint lines (``torch==2.6.0+cu124``) that nothing may move."""
    index_url: str | None = None
    no_deps: bool = False
    force: bool = False
    """Install again what is there already."""
    imports: tuple[str, ...] = ()
    """Modules that must import afterwards; else everything is put back."""
    needs_bytes: int = 0
    """Room that must be free where the packages lie."""


class AskUrl(Record, frozen=True, tag="ask-url"):
    """Go on only when this address answers; changes nothing."""

    url: str


Step = (
    Run
    | WriteFile
    | MovePath
    | SetVariable
    | StopProcess
    | AddLine
    | RecodeFile
    | RemovePath
    | InstallPackages
    | AskUrl
)


class Fix(Record, frozen=True):
    id: str
    """The finding it mends."""
    title: Text
    steps: tuple[Step, ...]
    touches: tuple[str, ...] = ()
    """Sections to read again afterwards."""
    risk: Text | None = None
    subject: str = ""
    """The finding's subject: with the id it names one finding."""
    only_when_asked: bool = False
    """Never part of ``--all``: what it does may not be what the person wants (ending a process)."""


class Change(Record, frozen=True):
    """One fix that was begun: written before its first step, closed after its last."""

    id: str
    at: str
    fix: Fix
    closed: bool = False


Outcome = Literal["begun", "done", "failed", "undoing", "undone"]


class JournalEntry(Record, frozen=True):
    """Written *before* the act, completed after."""

    id: str
    """``CHANGE.STEP``: 3.2 is the second step of change 3."""
    at: str
    fix: str
    step: Step
    before: dict[str, str | int | None] = {}
    """What was there: kind, mode, sha256, the blob that holds the bytes ..."""
    after: dict[str, str | int | None] = {}
    outcome: Outcome = "begun"
    undo: str = ""
    """Empty: it can be undone; else why not."""
    error: str = ""
