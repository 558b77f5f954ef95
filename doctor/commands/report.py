"""``doctor report``: a run as a page to read or send."""

from __future__ import annotations

import argparse
import sys

from doctor.commands import CommandError, Exit
from doctor.commands.run import no_such_run
from doctor.commands.watch import unreadable
from doctor.language import say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        default="last",
        metavar="RUN",
        help=say("a run's directory, its name, or last (default)"),
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--html", action="store_true", help=say("the page on stdout (default: into RUN/report.html)")
    )
    form.add_argument("--markdown", action="store_true", help=say("as Markdown on stdout"))
    form.add_argument("--json", action="store_true", help=say("as JSON on stdout"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service

    form = next((name for name in ("html", "markdown", "json") if getattr(namespace, name)), "")
    try:
        watcher = service.watch_run(namespace.name)
    except FileNotFoundError as error:
        raise CommandError(no_such_run(namespace.name, error), Exit.USAGE) from None
    try:
        watcher.poll()
    except OSError as error:
        raise CommandError(unreadable(namespace.name, error)) from None
    if form:
        sys.stdout.write(service.report_text(watcher, form))
        return Exit.OK
    path, why = service.write_report(watcher)
    if path is None:
        raise CommandError(why or "")
    print(path)
    return Exit.OK
