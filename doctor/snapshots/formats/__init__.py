"""A snapshot in the words of other tools. Each is a lossy view, and says what it lost. One format a file. Pure.

What a snapshot file says is data of a stranger: a name, version or address that is not plainly one is left out and named,
never written into a file that another tool will act on.
"""

from __future__ import annotations

import importlib

from doctor.model import Snapshot, Text
from doctor.snapshots.formats.rendered import FormatError, Rendered

__all__ = ["FORMATS", "FormatError", "Rendered", "convert"]

FORMATS = ("requirements", "pylock", "conda", "dockerfile", "apptainer", "cyclonedx", "markdown", "patch")


def convert(snapshot: Snapshot, form: str) -> Rendered:
    """Return ``snapshot`` as ``form``, one of :data:`FORMATS`.

    Raises:
        FormatError: it cannot be had from this snapshot; ``reasons`` lists all of what is missing.
    """
    rendered: Rendered = importlib.import_module(f"doctor.snapshots.formats.{form}").render(snapshot)
    return rendered


def reasons_of(error: FormatError) -> list[Text]:
    return list(error.reasons)
