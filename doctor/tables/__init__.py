"""The dated facts that checks compare with: TOML files beside this one, source and date on top of each."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent


@cache
def load(name: str) -> dict[str, Any]:
    """Return the table ``name`` (``drivers`` for drivers.toml), parsed once. Callers must not change it.

    Raises:
        FileNotFoundError: there is no such table.
    """
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def compiled(name: str) -> str:
    """Return the day on which the table ``name`` was compiled (``2026-11-30``); empty: it does not say."""
    return str(load(name).get("compiled", ""))
