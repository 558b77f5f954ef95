"""Where the profiles and known-good snapshots that come with the doctor lie: in a wheel, or in a checkout."""

from __future__ import annotations

from pathlib import Path

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
