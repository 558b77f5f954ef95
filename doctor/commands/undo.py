"""``doctor undo [ID]``: take back the last change, or one by its number in the journal."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.journal import Journal
    from doctor.model import JournalEntry


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help=say("a change (3) or one of its steps (3.2); without it, the last change that stands"))  # fmt: skip
    parser.add_argument("--yes", action="store_true", help=say("without asking"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.commands.fix_dialog import waiting
    from doctor.journal import JournalError

    try:
        with service.change_machine(waiting) as journal:
            return _undo(namespace, journal)
    except JournalError as error:
        raise CommandError(error.text) from None


def _undo(namespace: argparse.Namespace, journal: Journal) -> int:
    from doctor import service
    from doctor.commands.fix_dialog import ask, teller
    from runner.text import t

    name = namespace.id or _last(journal)
    if name is None:
        print(say("the journal holds no change that could be undone"))
        return Exit.OK
    standing = [one for one in journal.entries(name.partition(".")[0]) if one.outcome not in ("failed", "undone")]  # fmt: skip
    _show(standing, name)
    if not namespace.yes:
        if not sys.stdin.isatty():
            print(say("Nothing was changed: --yes does it."), file=sys.stderr)
            return Exit.OK
        if ask(say(t("undo change {id}? [y/N] ", id=name))) not in ("y", "yes"):
            return Exit.OK
    try:
        why = service.undo(journal, name, teller)
    except LookupError:
        raise CommandError(t("there is no change {id}: `doctor journal` lists them", id=name), Exit.USAGE) from None  # fmt: skip
    if why is not None:
        raise CommandError(why)
    print(say(t("change {id} is undone", id=name)))
    return Exit.OK


def _last(journal: Journal) -> str | None:
    """Return the last change of which a step stands that can be undone, or that was cut off."""
    alive = [
        entry
        for entry in journal.entries()
        if entry.outcome in ("begun", "undoing") or (entry.outcome == "done" and not entry.undo)
    ]
    return alive[-1].id.partition(".")[0] if alive else None


def _show(standing: list[JournalEntry], name: str) -> None:
    from doctor.render.fix_text import step_words

    for entry in reversed(standing):
        if name in (entry.id, entry.id.partition(".")[0]):
            print(f"  {entry.id}  {step_words(entry.step)}")
