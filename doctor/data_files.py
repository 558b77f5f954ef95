"""Where the profiles and known-good snapshots that come with the doctor lie: in a wheel, or in a checkout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent


def _shipped(name: str) -> Path:
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def profiles_dir() -> Path:
    """Return the folder of shipped profiles (``quickstart.toml`` ...)."""
    return _shipped("profiles")


def snapshots_dir() -> Path:
    """Return the folder of known-good snapshots."""
    return _shipped("snapshots")


def lock_beside(path: Path) -> dict[str, Any] | None:
    """Return the tables of ``NAME.lock`` beside a known-good ``NAME.json``; None: there is none, or it is no TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(path.with_suffix(".lock").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
