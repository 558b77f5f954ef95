"""Which release took a name away: one look-up over the groups of removed_names.toml. Pure."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from doctor.tables import load


class Removed(NamedTuple):
    """A name that is gone, since when, and what to write today."""

    name: str
    gone: str
    use: str


def removed_name(dotted: str) -> Removed | None:
    """Return the row that ``dotted``, or what it hangs on, falls under: ``transformers.deepspeed.HfDeepSpeedConfig``."""
    rows, starts = _rows()
    parts = dotted.split(".")
    for length in range(len(parts), 1, -1):
        name = ".".join(parts[:length])
        if name in rows:
            return rows[name]
    name = ".".join(parts[:2])
    for start, row in starts.items():
        if name.startswith(start) and name[len(start) : len(start) + 1].isupper():
            return row._replace(name=name)
    return None


@cache
def _rows() -> tuple[dict[str, Removed], dict[str, Removed]]:
    groups = load("removed_names")["names"]
    names = {
        name: Removed(name, group["gone"], group["use"])
        for group in groups
        for name in group.get("names", ())
    }
    starts = {
        start: Removed(start, group["gone"], group["use"])
        for group in groups
        for start in group.get("starts", ())
    }
    return names, starts
