"""A training script's common mistakes, judged by the versions installed and the machine at hand. Pure; nothing is run.

A rule is one function of a :class:`Script` and an :class:`Installed`, registered like a check. What is missing from a
fragment (seeds, clipping, a guard) is never more than a note: it may stand in a file that lint was not shown.
``# doctor: ignore`` on a line, or ``# doctor: ignore[id]``, silences it.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from packaging.version import InvalidVersion, Version

from doctor.lint.script import Call, Script, parse
from doctor.model import Evidence, Finding, Level, Snapshot, Text, t

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
    "collation",
    "checkpoints",
    "determinism",
    "distributed",
    "optimization",
    "accumulation",
    "placement",
    "overrides",
    "export",
    "export_inputs",
)

# Ids that rules give, so that others can name them without importing every rule.
RULE_IDS = (
    "accumulation-loss-not-scaled", "argument-too-new", "checkpoint-keys-not-loaded", "ckpt-missing-state", "clip-before-unscale",
    "clipping-missing", "cublas-workspace-unset", "cuda-visible-devices-set-late", "ddp-unused-parameters", "deprecated-api",
    "eval-logits-accumulate", "evaluation-without-eval", "flash-attn-unsupported-gpu", "fp16-on-bf16-pretrained", "fp16-params-with-gradscaler",
    "last-window-dropped", "learning-rate-too-high", "loss-kept-as-tensor", "needed-package-missing", "numpy-worker-seed",
    "onnx-dynamo-default-dynamic-axes", "onnx-export-in-train-mode", "onnx-fixed-axes", "onnx-input-order-mismatch", "oom-cleanup-skipped", "oom-retry-inside-except", "optimizer-before-cuda", "override-signature-changed",
    "padding-to-max-length", "reentrant-checkpoint-frozen-inputs", "removed-argument", "removed-import", "resume-not-bitwise", "script-not-decodable", "seeds-missing",
    "syntax-error", "torchfix", "token-id-out-of-vocab", "texts-not-padded", "torch-load-weights-only-default", "unknown-argument", "unscale-twice",
    "vocab-file-splitlines-corruption", "zero-grad-missing",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What a rule found, before it is tied to a file."""

    id: str
    level: Level
    line: int
    title: Text
    advice: Text | None = None
    about: str = ""


@dataclass(frozen=True)
class Installed:
    """What the examined environment holds: versions by distribution name, and the machine where it is known."""

    versions: Mapping[str, str]
    snapshot: Snapshot | None = None

    @cached_property
    def _by_normal_name(self) -> dict[str, str]:
        return {normal_name(name): version for name, version in self.versions.items()}

    def version(self, name: str) -> Version | None:
        """Return the installed version without its local part; None when unknown."""
        text = self.versions.get(name) or self._by_normal_name.get(normal_name(name))
        if not text:
            return None
        try:
            return Version(Version(text).public)
        except InvalidVersion:
            return None

    def at_least(self, name: str, version: str) -> bool | None:
        """Return whether ``name`` is ``version`` or newer; None when its version is unknown."""
        installed = self.version(name)
        return None if installed is None else installed >= Version(version)

    def is_missing(self, name: str) -> bool:
        """Return whether ``name`` is certainly not installed."""
        packages = self.snapshot.facts.packages.value if self.snapshot else None
        return bool(packages and packages.is_missing(name))

    def variable(self, name: str) -> str | None:
        environment = self.snapshot.facts.environment.value if self.snapshot else None
        return environment.get(name) if environment else None

    def lowest_capability(self) -> tuple[int, int] | None:
        """Return the compute capability of the weakest card; None when no card's is known."""
        gpus = self.snapshot.facts.gpus.value if self.snapshot else None
        found = (
            [
                tuple(map(int, gpu.compute_capability.split(".")))
                for gpu in gpus.items
                if gpu.compute_capability
            ]
            if gpus
            else []
        )
        return min(((major, minor) for major, minor in found), default=None)


def normal_name(name: str) -> str:
    """``huggingface_hub`` -> ``huggingface-hub``, as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


RuleFunction = Callable[[Script, Installed], Iterator[Problem]]
_RULES: list[RuleFunction] = []


def rule(function: RuleFunction) -> RuleFunction:
    """Register a rule; its docstring is its question.

    Raises:
        ValueError: it has no docstring.
    """
    if not function.__doc__:
        raise ValueError(f"rule {function.__name__} needs a docstring that asks its question")
    _RULES.append(function)
    return function


def problem(
    finding_id: str,
    level: Level,
    at: Call | ast.AST | int,
    title: Text,
    advice: Text | None = None,
    about: str = "",
) -> Problem:
    """Return a problem at a call, a node or a line."""
    line = at if isinstance(at, int) else at.line if isinstance(at, Call) else getattr(at, "lineno", 1)
    assert finding_id in RULE_IDS, finding_id
    return Problem(finding_id, level, line, title, advice, about)


def all_rules() -> tuple[RuleFunction, ...]:
    for module in MODULES:
        importlib.import_module(f"doctor.lint.{module}")
    return tuple(_RULES)


def lint_source(
    source: str,
    versions: Mapping[str, str] | None = None,
    path: str = "<script>",
    snapshot: Snapshot | None = None,
) -> list[Finding]:
    """Return what is wrong in a script (or a notebook's JSON), worst first within line order kept.

    ``versions`` maps distribution names to installed versions; without it, version-bound rules stay silent or say so.
    """
    try:
        script = read_script(source, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        return [unreadable(path, error, _python_of(snapshot))]
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
    return parse(_notebook_code(source) if path.endswith(".ipynb") else source, path)


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


def _notebook_code(source: str) -> str:
    """Return the code cells of a notebook as one script, cell after cell.

    Raises:
        ValueError: it is not a notebook.
    """
    try:
        tree = json.loads(source)
    except ValueError as error:
        raise ValueError(f"not a notebook: {error}") from None
    cells = tree.get("cells") if isinstance(tree, dict) else None
    if not isinstance(cells, list):
        raise ValueError("not a notebook: it has no list of cells")
    code = [
        "".join(map(str, cell["source"]))
        if isinstance(cell.get("source"), list)
        else str(cell.get("source", ""))
        for cell in cells
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    return "\n\n".join(map(_without_other_languages, code))


# %%bash   %%html   %%writefile train.py
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_AROUND_PYTHON = ("time", "timeit", "capture", "prun")


def _without_other_languages(cell: str) -> str:
    """Return a cell, or as many empty lines where its first line hands it to another program."""
    match = _CELL_MAGIC.match(cell)
    return cell if match is None or match[1] in _AROUND_PYTHON else "\n" * cell.count("\n")
