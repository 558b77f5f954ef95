"""``doctor journal``: what the doctor changed on this machine, what stands, and what was cut off."""

from __future__ import annotations

import argparse
import sys

from doctor.commands import CommandError, Exit
from doctor.language import say


def configure(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=say("as JSON"))
    form.add_argument("--finish", metavar="ID", help=say("go on with a change that was cut off"))
    form.add_argument("--drop", metavar="ID", help=say("forget a change and free what is kept for its way back"))  # fmt: skip


def run(namespace: argparse.Namespace) -> int:
    from doctor.journal import JournalError

    try:
        if namespace.finish or namespace.drop:
            return _act(namespace)
        return _list(namespace.json)
    except JournalError as error:
        raise CommandError(error.text) from None


def _list(as_json: bool) -> int:
    from doctor import service
    from doctor.render.fix_text import journal_lines
    from doctor.render.layout import columns

    changes, entries, half_done = service.journal_entries()
    if as_json:
        import msgspec

        tree = {"changes": changes, "entries": entries, "half_done": [change.id for change in half_done]}
        print(msgspec.json.format(msgspec.json.encode(tree), indent=1).decode())
    elif not changes:
        print(say("the doctor has changed nothing on this machine"))
    else:
        print("\n".join(journal_lines(changes, entries, half_done, columns(sys.stdout))))
    return Exit.OK


def _act(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.commands.fix_dialog import say_outcome, teller, waiting
    from runner.text import t

    name = namespace.finish or namespace.drop
    with service.change_machine(waiting) as journal:
        change = next((one for one in journal.changes() if one.id == name), None)
        if change is None:
            raise CommandError(t("there is no change {id}: `doctor journal` lists them", id=name), Exit.USAGE)
        half_done = change in journal.half_done()
        if namespace.drop:
            if half_done:
                raise CommandError(t("change {id} is half done: finish it or go back first", id=name))
            service.drop_change(journal, change)
            return Exit.OK
        if not half_done:
            print(say(t("change {id} is not half done", id=name)))
            return Exit.OK
        applied = service.finish(journal, change, lambda number, step: True, teller)
        say_outcome(applied)
        return Exit.OK if applied.outcome in ("done", "failed") else Exit.FOUND
