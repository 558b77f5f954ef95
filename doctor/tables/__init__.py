"""The dated facts that checks compare with: TOML files beside this one, source and date on top of each.

``ready.json`` holds the same tables parsed, since parsing them was a twentieth of ``doctor check``. A table
whose TOML has changed since is parsed again; ``python -m tests.tables --write`` brings the file up to date.
"""

from __future__ import annotations

import sys
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

_FOLDER = Path(__file__).parent
READY = _FOLDER / "ready.json"


@cache
def load(name: str) -> dict[str, Any]:
    """Return the table ``name`` (``drivers`` for drivers.toml), read once. Callers must not change it.

    Raises:
        FileNotFoundError: there is no such table.
    """
    raw = (_FOLDER / f"{name}.toml").read_bytes()
    ready = _ready().get(name)
    if ready is not None and ready.get("mark") == mark_of(raw):
        table: dict[str, Any] = ready["table"]
        return table
    return parse(raw)


@cache
def _ready() -> dict[str, dict[str, Any]]:
    try:
        return msgspec.json.decode(READY.read_bytes(), type=dict[str, dict[str, Any]])
    except (OSError, msgspec.MsgspecError):
        return {}


def mark_of(raw: bytes) -> str:
    """Return what tells one text of a table from another."""
    return f"{len(raw)}-{zlib.crc32(raw):08x}"


def parse(raw: bytes) -> dict[str, Any]:
    """Return a table from the bytes of its TOML file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    return tomllib.loads(raw.decode("utf-8"))


def compiled(name: str) -> str:
    """Return the day on which the table ``name`` was compiled (``2026-11-30``); empty: it does not say."""
    return str(load(name).get("compiled", ""))
