"""Which variables' values may be read and kept: the allow-list of tables/variables.toml. Pure."""

from __future__ import annotations

from functools import cache

from doctor.redact_secrets import is_secret_name
from doctor.tables import load


@cache
def _table() -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    table = load("variables")
    return frozenset(table["names"]), tuple(table["prefixes"]), frozenset(table["denied"])


def is_allowed(variable: str) -> bool:
    """Return whether the value of ``variable`` may be read and kept."""
    names, prefixes, denied = _table()
    if variable in names:
        return True
    return variable.startswith(prefixes) and variable not in denied and not is_secret_name(variable)
