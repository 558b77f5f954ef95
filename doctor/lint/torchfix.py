"""TorchFix's rules over a script, where TorchFix is installed: its findings beside ours, levels by what they mean.

TorchFix (extra ``torchfix``) knows no installed versions. What it calls removed is therefore a warning and never a failure;
what is deprecated, slow or a matter of style is a note. A line on which one of our own rules spoke is left to it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from doctor.lint import is_silenced
from doctor.lint.reader import parse
from doctor.lint.script import Script
from doctor.model import Evidence, Finding, Level, t

# TOR001 use, TOR004 import of a removed function; TOR002 a misspelt require_grad that silently does nothing.
_LOUD = {"TOR001", "TOR004", "TOR002"}
_OFF = ("TOR3", "TOR4", "TOR9")
"""Off in TorchFix itself unless asked for."""


def is_installed() -> bool:
    """Return whether this interpreter has TorchFix."""
    try:
        importlib.import_module("torchfix.torchfix")
    except ImportError:
        return False
    return True


def torchfix_findings(source: str, path: str, ours: Iterable[Finding]) -> list[Finding]:
    """Return what TorchFix finds in ``source`` on lines that ``ours`` does not speak of; nothing where it cannot parse.

    Raises:
        ImportError: TorchFix is not installed.
    """
    checker = importlib.import_module("torchfix.torchfix").TorchChecker
    try:
        script = parse(source, path)
        rows: Sequence[tuple[int, int, str, Any]] = list(
            checker(None, source.splitlines(keepends=True)).run()
        )
    except (SyntaxError, ValueError, RecursionError):
        return []  # lint itself says that the script cannot be read
    except Exception as error:  # a library of its own kind: its trouble is said, and costs our rules nothing
        title = t(
            "TorchFix could not read {file}: {error}",
            file=path,
            error=f"{type(error).__name__}: {error}"[:200],
        )
        return [Finding(id="torchfix", level="unknown", subject=path, title=title)]
    spoken = {evidence.fact for finding in ours for evidence in finding.evidence}
    return [
        _finding(script, row)
        for row in rows
        if f"{path}:{row[0]}" not in spoken
        and not row[2].startswith(_OFF)
        and not is_silenced(script, row[0], "torchfix")
    ]


def _finding(script: Script, row: tuple[int, int, str, Any]) -> Finding:
    line, _, words, _ = row
    code, _, message = words.partition(" ")
    level: Level = "warn" if code in _LOUD else "note"
    place = f"{script.path}:{line}"
    text = script.lines[line - 1].strip() if 0 < line <= len(script.lines) else ""
    return Finding(
        id="torchfix",
        level=level,
        subject=f"{place} {code}",
        title=t("TorchFix {code}: {message}", code=code, message=message.strip().rstrip(".")),
        evidence=(Evidence(fact=place, value=text[:200]),),
        link="https://github.com/pytorch-labs/torchfix#rules",
    )
