"""Where a check's rule stands: its function, and the dated tables that it compares with. Read off the code itself."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import doctor
from doctor.checks import Check
from doctor.lint import RULE_IDS
from doctor.tables import load

_PACKAGE = Path(doctor.__file__).parent
# load("drivers")     from doctor.tables.gpus import capability     from doctor.tables import gpus
_TABLE = re.compile(
    r"\bload\(\"(\w+)\"\)|^from doctor\.tables\.(\w+) import|^from doctor\.tables import (\w+)$", re.M
)
_NEIGHBOUR = re.compile(r"^from doctor\.checks\.(\w+) import", re.M)


def function_of(asked: Check) -> str:
    """Return ``doctor/checks/driver.py driver_runs_torch``."""
    return f"{asked.function.__module__.replace('.', '/')}.py {asked.function.__name__}"


def lint_file_of(finding_id: str) -> str:
    """Return the file whose rule gives ``finding_id`` on a script; empty where none does."""
    if finding_id not in RULE_IDS:
        return ""
    files = sorted((_PACKAGE / "lint").glob("*.py"))
    named = (
        f"doctor/lint/{path.name}"
        for path in files
        if path.name != "__init__.py" and f'"{finding_id}"' in path.read_text("utf-8")
    )
    return next(named, "doctor/lint/__init__.py")


def tables_of(asked: Check) -> tuple[str, ...]:
    """Return the tables that the check's file and those it leans on compare with, each with the day it was compiled."""
    name = asked.function.__module__.rpartition(".")[2]
    names = _named_in(name) | {table for one in _neighbours(name) for table in _named_in(one)}
    return tuple(f"doctor/tables/{table}.toml ({_compiled(table)})" for table in sorted(names))


@cache
def _text(module: str) -> str:
    return (_PACKAGE / "checks" / f"{module}.py").read_text("utf-8")


def _neighbours(module: str) -> set[str]:
    return {one for one in _NEIGHBOUR.findall(_text(module)) if f"doctor.checks.{one}" in sys.modules}


def _named_in(module: str) -> set[str]:
    found = {name for match in _TABLE.findall(_text(module)) for name in match if name}
    return {name for name in found if (_PACKAGE / "tables" / f"{name}.toml").exists()}


def _compiled(table: str) -> str:
    day = load(table).get("compiled")
    if day is None:  # it stands in the comment on top
        head = (_PACKAGE / "tables" / f"{table}.toml").read_text("utf-8")[:1000]
        match = re.search(r"20\d\d-\d\d-\d\d", head)
        day = match[0] if match else "?"
    return str(day)
