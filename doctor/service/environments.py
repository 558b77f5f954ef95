"""The other environments of this machine, and wheels for one without network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.environments import EnvironmentList
    from doctor.wheelhouse import Wheelhouse


def list_environments() -> EnvironmentList:
    """Find every Python environment on this machine and judge each."""
    from doctor.environments import list_environments
    from doctor.probes import Context

    return list_environments(Context())


def collect_wheels(
    folder: Path, extras: Sequence[str], python: str | None, options: Sequence[str]
) -> Wheelhouse:
    """Download rundoctor and what it needs into ``folder``. Raises doctor.wheelhouse.WheelhouseError."""
    from doctor.probes import Context
    from doctor.wheelhouse import collect

    return collect(folder, extras, Context(python=python), options)
