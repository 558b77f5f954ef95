"""What lies in the working directory and would act on the environment: requirements, files that hide modules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.model import Project, Reading, Text, ok, t
from doctor.probes.gaps import reason_of
from doctor.probes.requirement_files import read_requirements
from doctor.probes.shadowing import shadowing_files
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

_ENTRIES_LIMIT = 5_000


def probe(context: Context) -> Reading[Project]:
    """Look through the working directory, without going below it."""
    unread: dict[str, Text] = {}
    cwd = Path(context.root, *context.cwd.parts[1:])
    try:
        names = _entries(cwd, unread)
    except OSError as error:
        why = t("{path} could not be read: {error}", path=printable(str(context.cwd)), error=reason_of(error))
        return Reading(status="failed", why=why, source=printable(str(context.cwd)))
    project = Project(
        cwd=printable(str(context.cwd)),
        requirements=tuple(read_requirements(cwd, names, unread)),
        shadowing_files=tuple(shadowing_files(context, cwd, names)),
        is_package="__init__.py" in names,
        unread=unread,
    )
    return ok(project, printable(str(context.cwd)))


def _entries(cwd: Path, unread: dict[str, Text]) -> list[str]:
    names: list[str] = []
    with os.scandir(cwd) as entries:
        for entry in entries:
            if len(names) == _ENTRIES_LIMIT:
                why = t(
                    "only the first {count} {count:entry|entries} of the working directory {count:was|were} looked at",
                    count=_ENTRIES_LIMIT,
                )
                unread["requirements"] = unread["shadowing_files"] = why
                break
            names.append(entry.name)
    return sorted(names)
