"""A training script's common mistakes, judged by the versions installed and the machine at hand. Pure; nothing is run.

A rule is one function of a :class:`Script` and an :class:`Installed`, registered like a check. What is missing from a
fragment (seeds, clipping, a guard) is never more than a note: it may stand in a file that lint was not shown.
``# doctor: ignore`` on a line, or ``# doctor: ignore[id]``, silences it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping

from doctor.lint.deepspeed_config import config_findings
from doctor.lint.notebooks import notebook_code
from doctor.lint.reader import is_python, parse
from doctor.lint.rules import RULE_IDS, RULES, Installed, Problem, RuleFunction, problem, rule
from doctor.lint.script import Call, Script
from doctor.model import Evidence, Finding, Snapshot, t

__all__ = [
    "RULE_IDS",
    "Call",
    "Installed",
    "Problem",
    "Script",
    "all_rules",
    "lint_script",
    "lint_source",
    "problem",
    "problems_in",
    "read_script",
    "rule",
    "unreadable",
]

MODULES = (
    "encoding",
    "api",
    "removed",
    "loading",
    "precision",
    "scaling",
    "memory",
    "oom",
    "data",
    "tokenizers",
    "collation",
    "checkpoints",
    "recomputation",
    "determinism",
    "distributed",
    "visible_devices",
    "optimization",
    "accumulation",
    "placement",
    "overrides",
    "export",
    "export_inputs",
)


def all_rules() -> tuple[RuleFunction, ...]:
    for module in MODULES:
        importlib.import_module(f"doctor.lint.{module}")
    return tuple(RULES)


def lint_source(
    source: str,
    versions: Mapping[str, str] | None = None,
    path: str = "<script>",
    snapshot: Snapshot | None = None,
) -> list[Finding]:
    """Return what is wrong in a script, a notebook's JSON or DeepSpeed's, worst first within line order kept.

    ``versions`` maps distribution names to installed versions; without it, version-bound rules stay silent or say so.
    """
    if path.endswith(".json"):
        return config_findings(source, path)
    try:
        script = read_script(source, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        found = [unreadable(path, error, _python_of(snapshot))]
        if not path.endswith(".ipynb") or not isinstance(error, SyntaxError):
            return found
        script = parse(notebook_code(source, is_python), path)  # one cell is not Python: the others are
        return found + lint_script(script, versions, snapshot)
    return lint_script(script, versions, snapshot)


def lint_script(
    script: Script, versions: Mapping[str, str] | None = None, snapshot: Snapshot | None = None
) -> list[Finding]:
    """Return what is wrong in a script that has been read; see :func:`lint_source`."""
    installed = Installed(versions_of(snapshot) if versions is None else versions, snapshot)
    return [_finding(script, item) for item in problems_in(script, installed)]


def read_script(source: str, path: str) -> Script:
    """Return a script, or the code of a notebook (``.ipynb``), parsed.

    Raises:
        SyntaxError: it is not Python.
        ValueError: it is no notebook, or holds a NUL.
        RecursionError: it is nested too deeply to be read.
    """
    return parse(notebook_code(source) if path.endswith(".ipynb") else source, path)


def unreadable(path: str, error: Exception, python: str | None = None) -> Finding:
    """Return the finding that a script could not be read, from what :func:`read_script` raised.

    It is a failure where the interpreter that will run it (``python``, its version) knows no more syntax than ours.
    """
    place = f"{path}:{getattr(error, 'lineno', None) or 1}"
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    minor = ".".join((python or "").split(".")[:2])
    whole = not path.endswith(".ipynb")  # a cell of another language is no mistake
    if whole and isinstance(error, SyntaxError) and _OLDEST_ALIKE <= _number(minor) <= sys.version_info[:2]:
        title = t("{place}: Python {python} cannot read this script: {error}", place=place, python=minor, error=reason)  # fmt: skip
        advice = t("It is written for Python 2: convert it, or take its authors' newer version.") if "in call to 'print'" in reason else None  # fmt: skip
        return Finding(id="syntax-error", level="fail", subject=place, title=title, advice=advice)
    title = t("{place} could not be read as Python: {error}", place=place, error=reason)
    return Finding(id="syntax-error", level="unknown", subject=place, title=title)


_OLDEST_ALIKE = (3, 7)
"""Before it ``async`` and ``await`` were ordinary names: what fails here may run there."""


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split(".") if part.isdigit())


def _python_of(snapshot: Snapshot | None) -> str | None:
    python = snapshot.facts.python.value if snapshot else None
    return python.version if python else None


def problems_in(script: Script, installed: Installed) -> list[Problem]:
    """Return what the rules find and no comment silences, in the order of its lines."""
    problems = [found for one in all_rules() for found in one(script, installed)]
    kept = [item for item in problems if not is_silenced(script, item.line, item.id)]
    return sorted(kept, key=lambda item: (item.line, item.id))


def versions_of(snapshot: Snapshot | None) -> dict[str, str]:
    """Return distribution -> version of a snapshot, torch's own version (with its build) over its distribution's."""
    if snapshot is None or snapshot.facts.packages.value is None:
        return {}
    found = {
        item.name: item.version for item in reversed(snapshot.facts.packages.value.items) if item.version
    }
    torch = snapshot.facts.torch.value
    return {**found, "torch": torch.version} if torch and torch.version else found


def _finding(script: Script, item: Problem) -> Finding:
    place = f"{script.path}:{item.line}"
    text = script.lines[item.line - 1].strip() if 0 < item.line <= len(script.lines) else ""
    return Finding(
        id=item.id,
        level=item.level,
        subject=f"{place} {item.about}".strip(),
        title=item.title,
        advice=item.advice,
        evidence=(Evidence(fact=place, value=text[:200]),),
    )


# opt = AdamW(...)  # doctor: ignore[removed-import, learning-rate-too-high]
_IGNORE = re.compile(r"#\s*doctor:\s*ignore(?:\[(?P<ids>[\w\s,\-]+)\])?")


def is_silenced(script: Script, line_number: int, finding_id: str) -> bool:
    """Return whether a comment on that line silences ``finding_id``."""
    line = script.lines[line_number - 1] if 0 < line_number <= len(script.lines) else ""
    hit = _IGNORE.search(line)
    return bool(hit) and (hit["ids"] is None or finding_id in re.split(r"[\s,]+", hit["ids"]))  # type: ignore[index]
