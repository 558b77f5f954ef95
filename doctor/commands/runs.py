"""``doctor runs``: the runs here and what state they are in."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from doctor.commands import Exit
from doctor.language import current_language, say
from runner.text import t

if TYPE_CHECKING:
    from doctor.watching import RunSummary


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from runner.events import finite_or_name
    from runner.rundir import runs_home
    from runner.strings import printable

    rows = service.list_runs()
    if namespace.json:
        print(json.dumps([finite_or_name(asdict(row)) for row in rows], indent=1))
        return Exit.OK
    if not rows:
        print(
            say(
                t(
                    "no runs in {folder} (DOCTOR_RUNS names another folder)",
                    folder=str(runs_home().absolute()),
                )
            )
        )
        return Exit.OK
    for row in rows:
        print("\n".join([_line(row), *(f"    {printable(words)}" for words in row.damage)]))
    return Exit.OK


def _status(status: str) -> str:
    """Return the status in one word: in English as in --json, else as the watch says it, without what explains it."""
    from doctor.render.run_text import status_word

    return status if current_language() == "en" else re.split("[（：]", status_word(status))[0]


def _line(row: RunSummary) -> str:
    from doctor.render.layout import human_seconds, pad, paint, wants_colour
    from doctor.render.run_text import figure, status_role
    from runner.strings import printable

    started = time.strftime("%m-%d %H:%M", time.localtime(row.started_at)) if row.started_at else "-"
    status = paint(pad(_status(row.status), 11), status_role(row.status), wants_colour(sys.stdout))
    step = f"{row.step}/{row.steps_total or '?'}"
    metrics = "  ".join(f"{printable(name)} {figure(value)}" for name, value in list(row.metrics.items())[:2])
    parts = [
        pad(printable(row.name), 34),
        status,
        pad(step, 13),
        started,
        pad(human_seconds(row.seconds), 10),
    ]
    together = [say(t("{count} {count:process|processes}", count=row.processes))] if row.processes > 1 else []
    return "  ".join([*parts, f"{say('loss')} {figure(row.loss)}", metrics, *together]).rstrip()
