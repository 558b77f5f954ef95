"""What people call cards: ``RTX4090D``, ``A100 80G``, ``H20-NVLink / 96GB`` -> the table's rows; a typing error -> what is near. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from doctor.tables import load

_SAY_NOTHING = frozenset({"nvidia", "geforce", "tesla", "rtx", "gtx", "nvlink", "generation", "edition"})
"""Brand, and what every card of a kind has: left out when a card is called."""
_NEAREST = 3


def _words(name: str) -> set[str]:
    """``RTX4090D`` and ``RTX 4090 D`` are one card, ``V100-32G`` has 32 GB, ``SXM4`` and ``SXM`` are one form."""
    spaced = re.sub(r"\b(rtx|gtx)(\d{4})", r"\1 \2", name.lower())
    spaced = re.sub(r"(\d{4}) ?(d|ti|super)\b", r"\1 \2", spaced)
    spaced = re.sub(r"(\d{4})ada\b", r"\1 ada", spaced)  # RTX 6000Ada
    spaced = re.sub(r"\b(\d+) ?(?:gib|gb|g)\b", r"\1gb", spaced)
    spaced = re.sub(r"\bsxm\d\b", "sxm", spaced)
    return set(re.findall(r"[a-z0-9.]+|[\u4e00-\u9fff]+", spaced)) - _SAY_NOTHING


def _rows() -> Sequence[dict[str, Any]]:
    rows: Sequence[dict[str, Any]] = load("gpus")["gpu"]
    return rows


def cards_called(name: str) -> list[str]:
    """Return the cards of the table that a short name means: ``A100 80GB`` is both forms, ``RTX 4090`` not the D.

    The size of a card that is made in one size only may be said or left out.
    """
    return [str(row["name"]) for row in rows_called(name)]


def rows_called(name: str) -> list[dict[str, Any]]:
    """Return the table's rows that a short name means; see :func:`cards_called`."""
    wanted = _words(name)
    exact = [row for row in _rows() if any(_words(one) == wanted for one in (row["name"], *row["aliases"]))]
    if exact:
        return exact
    found = [row for row in _rows() if wanted and wanted <= _words(row["name"])]
    return found or [row for row in _rows() if _is_of_the_size(wanted, row)]


def _is_of_the_size(wanted: set[str], row: dict[str, Any]) -> bool:
    size = f"{row['memory_gb']}gb"
    return size in wanted and wanted - {size} == _words(row["name"]) - {size}


def nearest_cards(name: str) -> list[str]:
    """Return the cards whose names look most like ``name``, as people say them; empty: none does."""
    import difflib

    said = {" ".join(sorted(_words(row["name"]))): str(row["name"]) for row in _rows()}
    near = difflib.get_close_matches(" ".join(sorted(_words(name))), said, _NEAREST, 0.5)
    return [said[one] for one in near]
