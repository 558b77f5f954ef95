"""``doctor report``: a run as a page to read or send; two runs side by side."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.commands.run_resume import no_such_run
from doctor.commands.watch import unreadable
from doctor.language import say
from runner.strings import shown

if TYPE_CHECKING:
    from doctor.watching import RunWatcher


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        default="last",
        metavar="RUN",
        help=say("a run's directory, its name, or last (default)"),
    )
    parser.add_argument(
        "other",
        nargs="?",
        metavar="RUN",
        help=say(
            "a second run: both side by side (settings that differ, curves, metrics, speed, environment)"
        ),
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
    watcher = _polled(namespace.name)
    if namespace.other is not None:
        sys.stdout.write(_side_by_side(watcher, _polled(namespace.other), form or "text"))
        return Exit.OK
    if form:
        sys.stdout.write(service.report_text(watcher, form))
        return Exit.OK
    path, why = service.write_report(watcher)
    if path is None:
        raise CommandError(why or "")
    print(shown(str(path)) if sys.stdout.isatty() else path)
    return Exit.OK


def _polled(name: str) -> RunWatcher:
    """Return a run, read up to now. Raises CommandError."""
    from doctor import service

    try:
        watcher = service.watch_run(name)
        watcher.poll()
    except FileNotFoundError as error:
        raise CommandError(no_such_run(name, error), Exit.USAGE) from None
    except OSError as error:
        raise CommandError(unreadable(name, error)) from None
    return watcher


def _side_by_side(a: RunWatcher, b: RunWatcher, form: str) -> str:
    from doctor import service
    from doctor.render.layout import columns

    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return service.compare_text(a, b, form, columns(sys.stdout), unicode)
