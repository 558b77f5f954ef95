"""The verbs: what both faces (commands and the TUI) may ask. Neither decides anything; the deciding is below here.

Imports stay inside the functions: ``doctor check`` must not pay for what ``doctor run`` needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.model import Finding, Report, Snapshot


def examine(python: str | None = None, sections: Iterable[str] | None = None) -> Snapshot:
    """Read this machine and the environment of ``python`` (default: the session's own)."""
    from doctor.machine import live_snapshot
    from doctor.probes import Context

    return live_snapshot(Context(python=python), sections)


def load(path: Path) -> Snapshot:
    """Read a recorded machine. Raises OSError, doctor.machine.BadSnapshot."""
    from doctor.machine import load_snapshot

    return load_snapshot(path)


def judge(snapshot: Snapshot) -> Report:
    from doctor.judge import judge

    return judge(snapshot)


def exit_code(report: Report, fail_on: str) -> int:
    from doctor.judge import exit_code

    return exit_code(report, fail_on)  # type: ignore[arg-type]


__all__ = ["Finding", "Mapping", "examine", "exit_code", "judge", "load"]
