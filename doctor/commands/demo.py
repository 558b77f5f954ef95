"""``doctor demo``: check this machine, train the quickstart on real text with a live view, say where the report lies."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from doctor.commands.run import plan, refuse_if_it_would_fail, start
from doctor.language import say

if TYPE_CHECKING:
    from doctor.launch import StartedRun
    from doctor.running import PlannedRun

PROFILE = "quickstart"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="overrides",
        help=say("change one value of the profile; may be given again"),
    )  # fmt: skip
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment that trains"))
    parser.add_argument("--anyway", action="store_true", help=say("start although findings say it will fail"))
    parser.add_argument(
        "--no-view", action="store_true", help=say("a progress line instead of the live view")
    )


def run(namespace: argparse.Namespace) -> int:
    from doctor.commands.attached import begin

    planned = plan(PROFILE, namespace.overrides, namespace.python)
    _show_check(planned)
    refuse_if_it_would_fail(planned, namespace.anyway)
    wants_view = not namespace.no_view and sys.stdout.isatty() and sys.stdin.isatty()
    return begin(lambda: start(planned, None), tell=_open_view if wants_view else None)


def _open_view(started: StartedRun) -> None:
    """Open the full screen; leaving it leaves the run alone, and the progress line goes on below."""
    from doctor.commands.view import open_view

    open_view(run=str(started.run.path))


def _show_check(planned: PlannedRun) -> None:
    from doctor.render.layout import columns, wants_colour
    from doctor.render.text import report_lines

    width, colour = columns(sys.stdout), wants_colour(sys.stdout)
    print("\n".join(report_lines(planned.report, planned.snapshot, width, colour)), flush=True)
