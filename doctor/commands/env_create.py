"""``doctor env create STACK|--recommended``: a fresh environment that fits this machine. No verb of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.model import Fix


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("stack", nargs="?", metavar="STACK", help=say("a known-good environment (`doctor snapshot list`) or a snapshot file"))  # fmt: skip
    what.add_argument("--recommended", action="store_true", help=say("the torch for this driver and these cards, and what goes with it"))  # fmt: skip
    parser.add_argument("--venv", metavar="DIR", type=Path, required=True, help=say("the folder to make; it must not be there yet"))  # fmt: skip
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter to make it with (default: the one examined)"))  # fmt: skip
    parser.add_argument("--index-url", metavar="URL", help=say("take packages from this index instead (a mirror of the PyTorch wheels)"))  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help=say("only show what would be done"))
    parser.add_argument("--yes", action="store_true", help=say("do every step without asking"))


def run(namespace: argparse.Namespace) -> int:
    if namespace.stack:
        return _restore(namespace)
    found = _plan(namespace)
    _show(found)
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if namespace.dry_run or not (asks or namespace.yes):
        if not namespace.dry_run:
            print(say("Nothing was changed: --yes does it, in a terminal each step is asked for."), file=sys.stderr)  # fmt: skip
        return Exit.OK
    return _make(namespace, found)


def _restore(namespace: argparse.Namespace) -> int:
    """A named stack is a snapshot restored: one way to make an environment again, not two."""
    from doctor.commands import main

    words = ["snapshot", "restore", namespace.stack, "--venv", str(namespace.venv)]
    words += ["--python", namespace.python] if namespace.python else []
    words += ["--torch-index", namespace.index_url] if namespace.index_url else []
    words += [flag for flag, wanted in (("--dry-run", namespace.dry_run), ("--yes", namespace.yes)) if wanted]
    return main(words)


def _plan(namespace: argparse.Namespace) -> Fix:
    from doctor import service
    from doctor.model import Fix
    from runner.text import t

    folder = namespace.venv.absolute()
    if folder.exists():
        raise CommandError(t("{folder} is there already: name another one", folder=str(folder)), Exit.USAGE)
    found = service.plan_environment(folder, namespace.python, namespace.index_url)
    if isinstance(found, Fix):
        return found
    raise CommandError(found)


def _show(found: Fix) -> None:
    from doctor import service
    from doctor.render.fix_text import step_lines
    from doctor.render.layout import columns, wants_colour

    print(say(found.title))
    for number, step in enumerate(found.steps, 1):
        sketch = service.preview_step(step, live=False)
        lines = step_lines(number, step, lambda step, lines=sketch: lines, service.way_back, columns(sys.stdout), wants_colour(sys.stdout))  # type: ignore[misc]  # fmt: skip
        print("\n".join(lines))
    if found.risk is not None:
        print("    " + say(found.risk))


def _make(namespace: argparse.Namespace, found: Fix) -> int:
    from doctor import service
    from doctor.commands.fix_dialog import asking, say_outcome, teller, waiting
    from doctor.journal import JournalError

    confirm = (lambda number, step: True) if namespace.yes else asking(len(found.steps))
    try:
        with service.change_machine(waiting) as journal:
            applied = service.apply_fix(journal, found, confirm, teller)
    except JournalError as error:
        raise CommandError(error.text) from None
    say_outcome(applied)
    if applied.outcome != "done":
        if applied.error is not None:
            raise CommandError(applied.error)
        return Exit.FOUND
    return _look(namespace.venv.absolute())


def _look(folder: Path) -> int:
    """Use its torch for real, judge what was made, and keep its snapshot in it."""
    from doctor import service
    from doctor.render.text import brief_line

    python = str(folder / "bin/python")
    print(say("Using its torch for real ..."), file=sys.stderr)
    snapshot = service.examine_deeply(service.examine(python), python)
    report = service.judge(snapshot)
    service.export_snapshot(str(folder / "doctor-snapshot.json"), python)
    print(brief_line(report))
    print(folder / "bin/activate")
    return service.exit_code(report, "fail")
