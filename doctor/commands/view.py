"""``doctor`` without a verb: the full-screen view, in this terminal or, with ``--web``, in a browser."""

from __future__ import annotations

import argparse

from doctor.commands import CommandError, Exit, browser
from doctor.language import TYPE_CHECKING, say

if TYPE_CHECKING:
    from doctor.process_watch import ProcessWatcher


def configure(parser: argparse.ArgumentParser) -> None:
    browser.configure(parser)
    parser.add_argument(
        "--readonly", action="store_true", help=say("the full-screen view without the keys that act")
    )


def run(namespace: argparse.Namespace) -> int:
    if browser.is_wanted(namespace):
        return browser.serve(namespace, ("--readonly",) if namespace.readonly else ())
    code = open_view(readonly=namespace.readonly)
    if code is None:
        raise CommandError(
            say(
                "The full-screen view needs the [tui] extra: pip install 'rundoctor[tui]'. `doctor check` works without it."
            ),
            Exit.USAGE,
        )
    return code


def open_view(
    run: str | None = None, foreign: ProcessWatcher | None = None, readonly: bool = False
) -> int | None:
    """Show the view in this terminal, on a run or on somebody's process; None: it is not installed."""
    try:
        from doctor.tui.app import run_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "textual_plotext", "plotext"):
            raise
        return None
    return run_app(run=run, foreign=foreign, readonly=readonly)
