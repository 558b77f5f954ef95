"""The Python of a notebook: its code cells without what other languages or magics are in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable


def notebook_code(source: str, reads: Callable[[str], bool] | None = None) -> str:
    """Return the code cells of a notebook as one script, cell after cell; as empty lines those that ``reads`` refuses.

    Raises:
        ValueError: it is not a notebook.
    """
    try:
        tree = json.loads(source)
    except ValueError as error:
        raise ValueError(f"not a notebook: {error}") from None
    cells = tree.get("cells") if isinstance(tree, dict) else None
    if not isinstance(cells, list):
        raise ValueError("not a notebook: it has no list of cells")
    code = [
        "".join(map(str, cell["source"]))
        if isinstance(cell.get("source"), list)
        else str(cell.get("source", ""))
        for cell in cells
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    cells_of_python = map(_without_other_languages, code)
    return "\n\n".join(
        cell if reads is None or reads(cell) else "\n" * cell.count("\n") for cell in cells_of_python
    )


# %%bash   %%html   %%writefile train.py
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")


_AROUND_PYTHON = ("time", "timeit", "capture", "prun")


def _without_other_languages(cell: str) -> str:
    """Return a cell, or as many empty lines where its first line hands it to another program."""
    match = _CELL_MAGIC.match(cell)
    return cell if match is None or match[1] in _AROUND_PYTHON else "\n" * cell.count("\n")
