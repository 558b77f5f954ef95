"""drivers.toml as answers: is this driver enough for that CUDA, which CUDA does it serve, does it drive that card. Pure."""

from __future__ import annotations

import re

from doctor.tables import load

Number = tuple[int, ...]


def number(version: str | None) -> Number:
    """Return the leading dotted number: ``535.129.03`` -> (535, 129, 3); empty when there is none."""
    found = re.match(r"\d+(?:\.\d+)*", version or "")
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def at_least(version: str, minimum: str) -> bool:
    """Return whether ``version`` is ``minimum`` or newer; a missing part counts as zero."""
    have, need = number(version), number(minimum)
    length = max(len(have), len(need))
    return have + (0,) * (length - len(have)) >= need + (0,) * (length - len(need))


def branch(version: str | None) -> int | None:
    parts = number(version)
    return parts[0] if parts else None


def newest_known_branch() -> int:
    return max(int(row["branch"]) for row in load("drivers")["branch"])


def cuda_of_driver(version: str | None) -> str | None:
    """Return the newest CUDA that a Linux driver serves, by its branch; None for a branch that is not listed.

    A branch between two listed ones serves at least the CUDA of the older one.
    """
    mine = branch(version)
    if mine is None or mine > newest_known_branch():
        return None
    below = [row for row in load("drivers")["branch"] if row["branch"] <= mine]
    return max(below, key=lambda row: int(row["branch"]))["cuda"] if below else None


def minimum_driver(cuda: str, windows: bool = False) -> str | None:
    """Return the oldest driver that runs programs built with ``cuda`` (``12.4``); None when the table does not know."""
    table = load("drivers")
    exact: str | None = table["minimum_before_11_1"].get(cuda)
    if exact and not windows:
        return exact
    found: str | None = table["minimum"]["windows" if windows else "linux"].get(cuda.partition(".")[0])
    return found


def runs_cuda(driver: str, driver_cuda: str | None, cuda: str, windows: bool = False) -> bool | None:
    """Return whether ``driver`` runs programs built with ``cuda``; None when neither number nor table can say.

    What the driver says of itself (``driver_cuda``) settles a newer major. The table settles the rest; a driver newer
    than the table runs every major the table knows.
    """
    if driver_cuda and number(driver_cuda)[:1] > number(cuda)[:1]:
        return True
    minimum = minimum_driver(cuda, windows)
    if minimum and number(driver):
        return at_least(driver, minimum)
    serves = driver_cuda or (None if windows else cuda_of_driver(driver))
    return None if serves is None else number(serves)[:1] >= number(cuda)[:1]


def last_branch_for(capability: str) -> int | None:
    """Return the last driver branch for a card that newer ones dropped; None: still driven, or unknown."""
    rows = (row for row in load("drivers")["family"] if capability in row["capabilities"])
    return next((row.get("last_branch") for row in rows), None)


def newest_known_capability() -> Number:
    return max(number(one) for row in load("drivers")["family"] for one in row["capabilities"])
