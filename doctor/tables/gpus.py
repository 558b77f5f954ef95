"""gpus.toml as answers: capability and nominal memory of a card known by name, and what kind of card it is. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from doctor.tables import load


def _short(name: str) -> str:
    """``NVIDIA GeForce RTX 4090`` -> rtx 4090: what every way of writing the name has in common."""
    return re.sub(r"\b(nvidia|geforce|tesla)\b", "", name.lower()).replace("-", " ").strip()


@cache
def _by_name() -> dict[str, dict[str, Any]]:
    rows = load("gpus")["gpu"]
    return {_short(name): row for row in rows for name in (row["name"], *row["aliases"])}


def row_of(name: str) -> dict[str, Any] | None:
    """Return the table's row for a product name; the longest listed name that it begins with, or None."""
    wanted = re.sub(r"\s+", " ", _short(name))
    names = [known for known in _by_name() if wanted == known or wanted.startswith(known + " ")]
    return _by_name()[max(names, key=len)] if names else None


def capability_of(name: str) -> str:
    """Return the compute capability of a card known by name; empty when it is not in the table."""
    row = row_of(name)
    return str(row["capability"]) if row else ""


# GeForce RTX 4090, RTX 4070 Ti, GTX 1650, TITAN RTX; not RTX 4000 Ada Generation, RTX A6000, Quadro RTX 6000
_CONSUMER = re.compile(r"geforce|\bgtx\b|titan|\brtx (20|30|40|50)[5-9]0\b", re.IGNORECASE)
_RTX_40 = re.compile(r"\brtx 40[5-9]0\b", re.IGNORECASE)
# Tesla T4, NVIDIA A100-SXM4-80GB, A10G, H100 80GB HBM3, L40S, GH200 480GB, B200
_DATA_CENTER = re.compile(
    r"tesla|\b(v100s?|p100|p40|p4|t4|a2|a10g?|a16|a30|a40|a100|a800|l2|l4|l20|l40s?|h20|h100|h200|h800|gh200|b200|gb200|b300|gb300)\b",
    re.IGNORECASE,
)


def is_consumer(name: str) -> bool:
    """A GeForce or TITAN card, by its name."""
    return bool(_CONSUMER.search(name)) and "quadro" not in name.lower()


def is_rtx_40(name: str) -> bool:
    return bool(_RTX_40.search(name))


def is_data_center(name: str) -> bool:
    return bool(_DATA_CENTER.search(name.replace("-", " "))) and not is_consumer(name)


# NVIDIA A100-SXM4-80GB, NVIDIA H100 80GB HBM3, NVIDIA H200, NVIDIA B200
_SXM = re.compile(r"sxm|hbm3|\b(h200|b200|b300|h800|h20)$", re.IGNORECASE)


def is_sxm(name: str) -> bool:
    """A module of a board that joins its cards by NVSwitch (HGX, DGX), by its name."""
    return bool(_SXM.search(name)) and "pcie" not in name.lower()
