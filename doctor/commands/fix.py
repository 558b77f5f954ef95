"""``doctor fix [ID...]``: the plan shown first, each step asked for, everything written down, and judged again afterwards."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.apply import Applied, Confirm
    from doctor.cure import Proposal
    from doctor.journal import Journal
    from doctor.model import Fix, Report, Snapshot


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help=say("findings to mend: ID, or ID:SUBJECT where there are several; without one, all at fail and warn"))  # fmt: skip
    parser.add_argument("--all", action="store_true", help=say("the notes too"))
    parser.add_argument("--dry-run", action="store_true", help=say("only show what would be done"))
    parser.add_argument("--yes", action="store_true", help=say("do every step without asking"))
    parser.add_argument("--facts", metavar="FILE", type=Path, help=say("show the plan for a recorded machine; nothing is done"))  # fmt: skip
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    parser.add_argument("--script", metavar="FILE", type=Path, help=say("what this training script asks of the machine counts too"))  # fmt: skip
    parser.add_argument("--data", metavar="FILE", action="append", default=[], help=say("look at the encoding of this text file too"))  # fmt: skip
    parser.add_argument("--index-url", metavar="URL", help=say("take packages from this index instead (a mirror of the PyTorch wheels)"))  # fmt: skip


def run(namespace: argparse.Namespace) -> int:
    from doctor import service

    _check_ids(namespace.ids)
    snapshot = _snapshot(namespace)
    report = service.judge(snapshot)
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if namespace.dry_run or namespace.facts or not (asks or namespace.yes):
        return _only_show(namespace, snapshot, report)
    return _carry_out(namespace, snapshot, report)


def _check_ids(names: Sequence[str]) -> None:
    from doctor.checks import all_checks
    from runner.text import t

    known = {finding_id for one in all_checks() for finding_id in one.ids}
    for name in names:
        if name.partition(":")[0] not in known:
            raise CommandError(t("{id} is no finding that the doctor knows; `doctor check` shows those that are here", id=name), Exit.USAGE)  # fmt: skip


def _snapshot(namespace: argparse.Namespace) -> Snapshot:
    from doctor import service
    from doctor.commands.check import load_or_examine
    from doctor.cure import look_at_data
    from doctor.machine import with_facts
    from runner.text import t

    snapshot = load_or_examine(namespace.facts, namespace.python)
    try:
        if namespace.script:
            source = Path(namespace.script).read_text("utf-8", "replace")
            snapshot, _ = service.judge_for_script(snapshot, source, str(namespace.script))
        if namespace.data:
            paths = [str(Path(name).absolute()) for name in namespace.data]
            snapshot = with_facts(snapshot, data=look_at_data(paths))
    except OSError as error:
        raise CommandError(t("cannot read {file}: {error}", file=str(error.filename), error=error.strerror or str(error)), Exit.USAGE) from None  # fmt: skip
    return snapshot


def _proposals(namespace: argparse.Namespace, snapshot: Snapshot, report: Report) -> list[Proposal]:
    from doctor import service
    from doctor.cure import with_index

    found = service.plan_fix(snapshot, report, namespace.ids, namespace.all)
    return [with_index(one, namespace.index_url) for one in found] if namespace.index_url else found


def _only_show(namespace: argparse.Namespace, snapshot: Snapshot, report: Report) -> int:
    found = _proposals(namespace, snapshot, report)
    _show(found, live=namespace.facts is None)
    if not found:
        print(say("nothing to mend was found"))
    elif not (namespace.dry_run or namespace.facts):
        print(say("Nothing was changed: --yes does it, in a terminal each step is asked for."), file=sys.stderr)  # fmt: skip
    return Exit.OK


def _show(found: Sequence[Proposal], live: bool = True) -> None:
    from doctor import service
    from doctor.render.fix_text import proposal_lines
    from doctor.render.layout import columns, wants_colour

    for proposal in found:
        lines = proposal_lines(
            proposal,
            partial(service.preview_step, live=live),
            service.way_back,
            columns(sys.stdout),
            wants_colour(sys.stdout),
        )
        print("\n".join(lines) + "\n")


def _carry_out(namespace: argparse.Namespace, snapshot: Snapshot, report: Report) -> int:
    from doctor import service
    from doctor.commands.fix_dialog import waiting
    from doctor.journal import JournalError

    try:
        with service.change_machine(waiting) as journal:
            _refuse_half_done(namespace, journal)
            return _one_by_one(namespace, journal, snapshot, report)
    except JournalError as error:
        raise CommandError(error.text) from None


def _refuse_half_done(namespace: argparse.Namespace, journal: Journal) -> None:
    """What was cut off is named first, and finished or gone back from, before anything else is begun."""
    from doctor.commands.fix_dialog import repair

    for change in journal.half_done():
        repair(journal, change, may_ask=not namespace.yes)


def _one_by_one(namespace: argparse.Namespace, journal: Journal, snapshot: Snapshot, report: Report) -> int:
    """Mend one finding after the other; after each the machine is judged again, and what went with it is not mended twice."""
    from doctor import service
    from doctor.cure import is_left_out
    from doctor.render.fix_text import turn_lines
    from doctor.render.layout import wants_colour

    handled: set[tuple[str, str]] = set()
    variables: dict[str, str | None] = {}
    worst = Exit.OK
    while (proposal := _next(_proposals(namespace, snapshot, report), handled)) is not None:
        handled.add((proposal.finding.id, proposal.finding.subject))
        _show([proposal])
        if proposal.fix is None:
            continue
        if is_left_out(proposal, namespace.ids):
            print("    " + say("left out: it is done only when asked for by its id") + "\n")
            continue
        if service.is_done_already(proposal.fix):
            print("    " + say("new shells have this already; this one has not read it yet") + "\n")
            continue
        applied = _apply(journal, proposal.fix, namespace.yes)
        if applied.outcome in ("failed", "stuck"):
            worst = Exit.FOUND
        if applied.done:
            variables |= applied.variables
            snapshot, report, turned = service.check_again(
                snapshot, report, proposal.fix, variables, namespace.python
            )
            print("\n".join(turn_lines(turned, wants_colour(sys.stdout))) + "\n")
    if not handled:
        print(say("nothing to mend was found"))
    return worst


def _next(found: Sequence[Proposal], handled: set[tuple[str, str]]) -> Proposal | None:
    return next((one for one in found if (one.finding.id, one.finding.subject) not in handled), None)


def _apply(journal: Journal, fix: Fix, yes: bool) -> Applied:
    from doctor import service
    from doctor.commands.fix_dialog import asking, say_outcome, teller

    confirm: Confirm = (lambda number, step: True) if yes else asking(len(fix.steps))
    applied = service.apply_fix(journal, fix, confirm, teller)
    say_outcome(applied)
    return applied
