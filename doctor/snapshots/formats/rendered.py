"""What an export gives: the text, and what is no longer in it. Or why it cannot be had. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.model import Record, Text


class Rendered(Record, frozen=True):
    text: str
    lost: tuple[Text, ...] = ()
    """What the snapshot knows and this file does not, or only as a comment."""
    file_name: str = ""
    """What the tool expects it to be called."""


class FormatError(Exception):
    """The format cannot be had from this snapshot. ``text`` says so, ``reasons`` everything that is missing."""

    def __init__(self, text: Text, reasons: Sequence[Text] = ()) -> None:
        super().__init__(str(text))
        self.text = text
        self.reasons = tuple(reasons)
