"""What of a run directory cannot be read, and where: a plan that is none, events that are none. Nothing is changed.

One torn line at a start's end is how a killed writer leaves a file and no damage; a file without a single event is.
"""

from __future__ import annotations

from pathlib import Path

from runner.command_plan import decode_any
from runner.events import read_events
from runner.plan import PlanError
from runner.rundir import RunDir
from runner.text import Text, t

LOOK_AT_BYTES = 1 << 20
"""So much of an events file without one event in it is enough to call it damaged."""


def damage_of(run: RunDir) -> list[Text]:
    """Return one sentence for each part of a run that cannot be read; empty: there is nothing wrong with those."""
    return [*_of_plan(run), *_of_events(run)]


def _of_plan(run: RunDir) -> list[Text]:
    try:
        decode_any(run.plan.read_bytes())
    except OSError as error:
        return [t("{path} cannot be read: {why}", path=str(run.plan), why=error.strerror or str(error))]
    except PlanError as error:
        if "newer" in error.problem.msgid:  # not ours to read, and sound
            return []
        return [t("{path} is damaged: {why}", path=str(run.plan), why=str(error.problem))]
    return []


def _of_events(run: RunDir) -> list[Text]:
    if run.events.exists() and not run.events.is_dir():
        return [t("{path} is not a folder: there are no events to read", path=str(run.events))]
    return [found for path in sorted(run.events.glob("*.jsonl")) for found in _of_file(path)]


def _of_file(path: Path) -> list[Text]:
    try:
        if next(read_events(path), None) is not None:
            return []
        with open(path, "rb") as file:
            head = file.read(LOOK_AT_BYTES)
    except OSError as error:
        return [t("{path} cannot be read: {why}", path=str(path), why=error.strerror or str(error))]
    lines = head.count(b"\n")
    if not lines and len(head) < LOOK_AT_BYTES:
        return []  # empty, or its first line is still being written
    return [
        t("{path} is damaged: from its first line on nothing is an event ({lines} {lines:line|lines} looked at)",
          path=str(path), lines=lines)
    ]  # fmt: skip
