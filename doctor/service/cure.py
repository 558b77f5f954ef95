"""Mending: planned, shown, done, undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.service.diagnosis import examine, judge

if TYPE_CHECKING:
    from doctor.apply import Applied, Confirm, Tell
    from doctor.cure import Proposal, Turn
    from doctor.journal import Journal
    from doctor.model import Change, Fix, JournalEntry, Report, Snapshot, Step
    from doctor.staging import Staged
    from runner.text import Text


def plan_fix(
    snapshot: Snapshot, report: Report, names: Sequence[str] = (), everything: bool = False
) -> list[Proposal]:
    """Return what would be done about the findings named (``ID``, ``ID:SUBJECT``), else about fails and warnings."""
    from doctor.cure import proposals

    return proposals(report, snapshot, names, everything)


def plan_environment(folder: Path, python: str | None, index_url: str | None) -> Fix | Text:
    """Return how a fresh environment for this machine is made, or why no torch fits it."""
    from doctor.cure import with_index_url
    from doctor.model import Fix
    from doctor.new_environment import recommended_environment
    from doctor.probes import Context
    from runner.text import t

    target = Context(python=python).target
    snapshot = examine(python, ("host", "driver", "gpus", "python", "platform", "container"))
    if target.executable is None:
        return t("there is no Python here to make an environment with")
    found = recommended_environment(snapshot, str(folder), str(target.executable), target.version or None)
    return with_index_url(found, index_url) if isinstance(found, Fix) and index_url else found


def preview_step(step: Step, live: bool = True) -> list[str]:
    """Return a step's exact commands or difference, as lines. Reads, never writes; not ``live``: reads nothing."""
    from doctor.apply import preview

    return preview(step, live)


def way_back(step: Step) -> Text | None:
    """Return why a step cannot be undone; None: it can."""
    from doctor.apply import cannot_undo

    return cannot_undo(step)


def is_done_already(fix: Fix) -> bool:
    """Return whether new shells have all that a fix would set; this session may not have read it yet."""
    from doctor.apply import is_done_already

    return is_done_already(fix)


def change_machine(waiting: Callable[[str], None] | None = None) -> AbstractContextManager[Journal]:
    """Hold the journal alone, for :func:`apply_fix` and :func:`undo`. Raises doctor.journal.JournalError."""
    from doctor.journal import locked

    return locked(waiting=waiting)


def apply_fix(journal: Journal, fix: Fix, confirm: Confirm, tell: Tell) -> Applied:
    """Carry out a fix, each step written down before it is done. Raises doctor.journal.JournalError."""
    from doctor.apply import apply_fix

    return apply_fix(journal, fix, confirm, tell)


def check_again(
    snapshot: Snapshot,
    report: Report,
    fix: Fix,
    variables: Mapping[str, str | None],
    python: str | None = None,
) -> tuple[Snapshot, Report, list[Turn]]:
    """Read what a fix touched, judge again, and say how the findings fared.

    ``variables`` are all that were set since the session began (None: unset): new shells have them, this one has not.
    """
    from doctor.cure import look_again, turns

    fresh = look_again(snapshot, fix.touches, variables, python)
    judged = judge(fresh)
    return fresh, judged, turns(report, judged, [fix.id])


def undo(journal: Journal, name: str, tell: Tell) -> Text | None:
    """Take back a change (``3``) or a step of it (``3.2``); return why not, None: done. Raises LookupError."""
    from doctor.apply import undo

    return undo(journal, name, tell)


def finish(journal: Journal, change: Change, confirm: Confirm, tell: Tell) -> Applied:
    """Go on with a change that was cut off."""
    from doctor.apply import finish

    return finish(journal, change, confirm, tell)


def stage_data(data: Path, to: Path | None, tell: Callable[[int, int], None]) -> Staged:
    """Put a data set on the fastest disk with room (or ``to``). Raises doctor.staging.StageError, OSError."""
    from doctor.stage_disk import folder_for
    from doctor.staging import files_of, stage

    source = data.absolute()
    if to is None:
        size = sum(info.st_size for info in files_of(source).values())
        to = folder_for(examine(sections=("platform", "storage")), source, size)
    return stage(source, to.absolute() if source.is_file() else to.absolute() / source.name, tell)


def drop_change(journal: Journal, change: Change) -> None:
    """Forget a change: it can no longer be undone, and what was kept of it is freed. Raises OSError."""
    from doctor.apply import drop

    drop(journal, change)


def half_done_changes() -> list[Change]:
    """Return the changes that were cut off, unless a doctor is at work just now. Raises JournalError."""
    from doctor.journal import Journal, is_held

    return [] if is_held() else Journal().half_done()


def journal_entries() -> tuple[list[Change], list[JournalEntry], list[Change]]:
    """Return every change, every entry, and the changes that were cut off. Raises doctor.journal.JournalError."""
    from doctor.journal import Journal

    journal = Journal()
    return journal.changes(), journal.entries(), journal.half_done()
