"""``doctor merge``: recorded machines judged together: where they differ that should be alike."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, complain
from doctor.commands.check import load_or_examine
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.fleet_records import FleetReport, Member


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE",
        help=say("snapshots of `doctor snapshot export`, or folders with one each; two or more"),
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=say("as JSON"))
    form.add_argument(
        "--markdown", action="store_true", help=say("redacted Markdown to paste into a bug report")
    )
    parser.add_argument(
        "--fail-on", choices=("fail", "warn", "note", "unknown"), default="fail",
        help=say("exit with 1 from this level on (default: fail)"),
    )  # fmt: skip


def run(namespace: argparse.Namespace) -> int:
    return show(read_members(namespace.files), form_of(namespace), namespace.fail_on)


def read_members(files: list[str]) -> list[Member]:
    """Return the machines of snapshot files, each by the shortest name that tells it from the others.

    Raises:
        CommandError: fewer than two, or one that cannot be read.
    """
    from doctor.fleet_records import Member

    files = _each_once(files)
    if len(files) < 2:
        raise CommandError(t("one machine has nothing to differ from: name two files or more"), Exit.USAGE)
    names = [Path(one).stem for one in files]
    if len(set(names)) < len(names):
        names = files
    return [
        Member(name=name, snapshot=load_or_examine(Path(one), None))
        for name, one in zip(names, files, strict=True)
    ]


def _each_once(files: list[str]) -> list[str]:
    """Return the files without those that are named again, which is said: counted twice, one machine would be most of two."""
    by_place = {Path(one).resolve(): one for one in reversed(files)}
    kept = list(reversed(by_place.values()))
    for name in sorted(set(files)):
        times = files.count(name)
        if times > 1:
            complain(t("{file} is named {count} times and counted once", file=name, count=times))
    return kept


def form_of(namespace: argparse.Namespace) -> str:
    """Return ``json``, ``markdown`` or ``text``, as asked for."""
    return "json" if namespace.json else "markdown" if namespace.markdown else "text"


def show(members: list[Member], form: str, fail_on: str) -> int:
    """Print how the members compare and return the exit code: 1 from ``fail_on`` on, 3 where something could not be read.

    Markdown is meant to leave the machine: what it tells of each is redacted first.
    """
    from msgspec.structs import replace

    from doctor import service
    from doctor.fleet_records import with_hosts
    from doctor.model import LEVELS

    if form == "markdown":
        members = [replace(one, snapshot=service.shareable(one.snapshot, live=False)) for one in members]
    else:
        members = with_hosts(members)
    report = service.judge_fleet(members)
    print(_in_form(report, form))
    worst = LEVELS[: LEVELS.index(fail_on) + 1]
    if any(one.level in worst for one in report.findings()):
        return Exit.FOUND
    return Exit.COULD_NOT_LOOK if report.unread else Exit.OK


def _in_form(report: FleetReport, form: str) -> str:
    if form == "json":
        from doctor.render.structured import record_as_json

        return record_as_json(report)
    from doctor.render.fleet_text import fleet_lines, fleet_markdown

    if form == "markdown":
        return fleet_markdown(report)
    from doctor.render.layout import columns, wants_colour

    return "\n".join(fleet_lines(report, columns(sys.stdout), wants_colour(sys.stdout)))
