"""Sentences as records: an English msgid and its fields, translated only where they are shown.

Every sentence that is stored or shown (titles, advice, reasons, notes) is a :class:`Text`. Code writes
``t("{name} has {free} free", name=..., free=...)``; the marker ``t`` is what the catalogue test extracts, so its first
argument must be one literal string (adjacent literals are fine, f-strings are not).
"""

from __future__ import annotations

import msgspec

from runner.strings import fields_of, fill, printable, unescape

__all__ = ["Param", "Text", "fields_of", "fill", "printable", "t", "unescape"]

Param = str | int | float | bool


class Text(msgspec.Struct, frozen=True, omit_defaults=True):
    """A translatable sentence: ``msgid`` with named fields in braces, and their values."""

    msgid: str
    params: dict[str, Param] = {}

    def __str__(self) -> str:
        return fill(self.msgid, self.params)


def t(msgid: str, /, **params: Param) -> Text:
    """Mark ``msgid`` for translation and bind its fields.

    Raises:
        KeyError: at once, not when shown, if ``msgid`` names a field that ``params`` lacks.
    """
    missing = [name for name in fields_of(msgid) if name not in params]
    if missing:
        raise KeyError(f"{msgid!r} needs {', '.join(missing)}")
    return Text(msgid, dict(params))
