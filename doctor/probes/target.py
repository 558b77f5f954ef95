"""Which interpreter is judged, and what can be known of it without running it. (Owned by the Python probes.)"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.probes import Context


@dataclass(frozen=True)
class Target:
    """An interpreter found on disk."""

    executable: Path | None
    """None: no Python was found."""
    prefix: Path | None = None
    version: str = ""
    kind: str = ""
    chosen_by: str = ""
    site_packages: tuple[Path, ...] = field(default=())


def find_target(context: Context) -> Target:
    raise NotImplementedError
