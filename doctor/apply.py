"""The only writer outside a run directory: carries out a fix step by step, takes it back, and repairs what was cut off."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from doctor.acts import Keeper, Refused, act_for, way_back
from doctor.journal import Journal, JournalError
from doctor.language import say
from doctor.model import AddLine, Change, Fix, JournalEntry, Record, SetVariable, Step, Text, WriteFile, t
from runner.strings import printable

Confirm = Callable[[int, Step], bool]
Tell = Callable[[int, Step, str, Text | None], None]
"""(number, step, what: doing, done, failed, undone, kept; why)."""


class Applied(Record, frozen=True):
    """What became of one fix."""

    change: str
    """Its number in the journal; empty: nothing was begun."""
    outcome: str
    """done, failed (and gone back from), stopped (the person said no to a step), stuck (half done, named at the next start)."""
    error: Text | None = None
    steps: tuple[Step, ...] = ()
    """Those that stand."""

    @property
    def done(self) -> int:
        return len(self.steps)

    @property
    def variables(self) -> dict[str, str | None]:
        """What the steps set (None: unset)."""
        return {step.name: step.value for step in self.steps if isinstance(step, SetVariable)}


def preview(step: Step, live: bool = True) -> list[str]:
    """Return what a step would do, as commands or a difference. Reads, never writes.

    Without ``live`` the machine is one from a file, and this one is not even read.
    """
    return act_for(step).preview(step) if live else act_for(step).sketch(step)


def cannot_undo(step: Step) -> Text | None:
    return act_for(step).cannot_undo(step)


def is_done_already(fix: Fix) -> bool:
    """Whether every file that ``fix`` would write holds already what it would hold. Reads, never writes."""
    files = (SetVariable, AddLine, WriteFile)
    return all(isinstance(step, files) and not preview(step) for step in fix.steps)


def apply_fix(journal: Journal, fix: Fix, confirm: Confirm, tell: Tell) -> Applied:
    """Carry out ``fix``; where a step fails, what was done of it is taken back.

    Raises:
        JournalError: the journal cannot be written; nothing was done then.
    """
    if fix.steps and not confirm(1, fix.steps[0]):
        return Applied(change="", outcome="stopped")
    change = journal.begin(fix)
    entries: list[JournalEntry] = []
    environ = dict(os.environ)
    for number, step in enumerate(fix.steps, 1):
        if number > 1 and not confirm(number, step):
            journal.write(msgspec.structs.replace(change, closed=True))
            return Applied(change=change.id, outcome="stopped", steps=_steps(entries))
        tell(number, step, "doing", None)
        entry, error = _carry_out(journal, change, number, step, environ)
        if error is not None:
            tell(number, step, "failed", error)
            return _go_back(journal, change, [*entries, *([entry] if entry else [])], error, tell)
        assert entry is not None
        entries.append(entry)
        tell(number, step, "done", None)
    journal.write(msgspec.structs.replace(change, closed=True))
    return Applied(change=change.id, outcome="done", steps=_steps(entries))


def _carry_out(
    journal: Journal, change: Change, number: int, step: Step, environ: dict[str, str]
) -> tuple[JournalEntry | None, Text | None]:
    """Return the entry (None: the step was not begun) and what went wrong."""
    act, entry = act_for(step), journal.entry(change, number, step)
    keeper = Keeper(journal, entry.id, environ)
    try:
        reason = act.cannot_undo(step)
        before = act.look(step, keeper)
        entry = msgspec.structs.replace(entry, before=before, undo=say(reason) if reason else "")
        journal.write(entry)
    except (Refused, OSError, JournalError) as error:
        return None, _why(error)
    try:
        after = act.do(step, before, keeper)
        done = msgspec.structs.replace(entry, after=after, outcome="done")
        journal.write(done)
    except (Refused, OSError, JournalError, KeyboardInterrupt) as error:
        return entry, _why(error)  # as the journal has it: begun
    if isinstance(step, SetVariable):
        _set(environ, step)
    return done, None


def _set(environ: dict[str, str], step: SetVariable) -> None:
    environ.pop(step.name, None)
    if step.value is not None:
        environ[step.name] = step.value


def _why(error: BaseException) -> Text:
    if isinstance(error, KeyboardInterrupt):
        return t("interrupted")
    if isinstance(error, (Refused, JournalError)):
        return error.text
    assert isinstance(error, OSError)
    return t("{file}: {error}", file=str(error.filename or ""), error=error.strerror or str(error))


def _go_back(
    journal: Journal, change: Change, entries: list[JournalEntry], error: Text, tell: Tell
) -> Applied:
    """Take back what was done of a fix that failed, so that nothing is left half done."""
    entries = [
        *entries[:-1],
        *(msgspec.structs.replace(one, error=printable(say(error))) for one in entries[-1:]),
    ]
    stuck = _take_back(journal, entries, tell, failed=True)
    if stuck is None:
        try:
            journal.write(msgspec.structs.replace(change, closed=True))
            return Applied(change=change.id, outcome="failed", error=error)
        except JournalError as full:
            stuck = full.text
    return Applied(change=change.id, outcome="stuck", error=error)


def _take_back(
    journal: Journal, entries: list[JournalEntry], tell: Tell, failed: bool = False
) -> Text | None:
    """Undo ``entries`` from the last to the first; return why one could not be, at which it stops."""
    for entry in reversed(entries):
        number = int(entry.id.partition(".")[2])
        if entry.outcome in ("failed", "undone"):
            continue
        if entry.outcome == "done" and (why := way_back(entry)) is not None:
            tell(number, entry.step, "kept", why)
            if not failed:
                journal.write(msgspec.structs.replace(entry, undo=say(why)))
            continue
        error = _take_back_one(journal, entry, "failed" if failed else "undone")
        if error is not None:
            tell(number, entry.step, "failed", error)
            return error
        tell(number, entry.step, "undone", None)
    return None


def _take_back_one(journal: Journal, entry: JournalEntry, outcome: str) -> Text | None:
    """Undo one entry. What was cut off while it was done is told by its missing ``after``."""
    keeper = Keeper(journal, entry.id, dict(os.environ), resumed=entry.outcome in ("begun", "undoing"))
    act, after = act_for(entry.step), (entry.after or None) if entry.outcome != "begun" else None
    try:
        if entry.outcome == "done":
            journal.write(msgspec.structs.replace(entry, outcome="undoing"))
        act.undo(entry.step, entry.before, after, keeper)
        journal.write(msgspec.structs.replace(entry, outcome=outcome))
    except (Refused, OSError, JournalError) as error:
        if entry.outcome == "done":
            try:
                journal.write(entry)  # refused before anything was touched: it stands as it stood
            except JournalError as full:
                return full.text
        return _why(error)
    return None


def undo(journal: Journal, name: str, tell: Tell) -> Text | None:
    """Take back a change (``3``) or one step of it (``3.2``); return why not, None: it is taken back.

    Raises:
        LookupError: there is no such change.
    """
    change, _, step = name.partition(".")
    entries = [one for one in journal.entries(change) if not step or one.id == name]
    record = next((one for one in journal.changes() if one.id == change), None)
    if record is None or (step and not entries):
        raise LookupError(name)
    error = _take_back(journal, entries, tell)
    if error is None and not record.closed and not step:
        journal.write(msgspec.structs.replace(record, closed=True))
    return error


def finish(journal: Journal, change: Change, confirm: Confirm, tell: Tell) -> Applied:
    """Go on with a change that was cut off: the step in hand is gone back from and done again, then the rest.

    A change that was being undone is undone to its end.
    """
    entries = journal.entries(change.id)
    if any(one.outcome in ("undoing", "undone", "failed") for one in entries):
        error = undo(journal, change.id, tell)
        return Applied(change=change.id, outcome="stuck" if error else "failed", error=error)
    half = [one for one in entries if one.outcome == "begun"]
    error = _take_back(journal, half, tell, failed=True)
    if error is not None:
        return Applied(change=change.id, outcome="stuck", error=error)
    standing = [one for one in entries if one.outcome == "done"]
    done = {int(one.id.partition(".")[2]) for one in standing}
    rest = tuple(step for number, step in enumerate(change.fix.steps, 1) if number not in done)
    journal.write(msgspec.structs.replace(change, closed=True))
    if not rest:
        return Applied(change=change.id, outcome="done", steps=_steps(standing))
    return apply_fix(journal, msgspec.structs.replace(change.fix, steps=rest), confirm, tell)


def drop(journal: Journal, change: Change) -> None:
    """Forget a change; what was kept for its way back is freed. Raises OSError."""
    for entry in journal.entries(change.id):
        act_for(entry.step).forget(entry.step, entry.before, Keeper(journal, entry.id))
    journal.drop(change.id)


def _steps(entries: list[JournalEntry]) -> tuple[Step, ...]:
    return tuple(one.step for one in entries)
