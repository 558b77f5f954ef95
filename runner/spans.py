"""Tags of words made into named spans, and how well two taggings agree. Pure.

BIO, IOB1 and BIOES are read alike, as conlleval does: a span begins at B- or S-, or where its type changes; it ends
before the next begins, after E- or S-, and at any tag without a type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAG = re.compile(r"([BIES])-(.+)")  # B-PER

Span = tuple[str, int, int]
"""``(type, first word, last word)``"""


def is_span_tagging(names: Sequence[str]) -> bool:
    """Do the classes name spans: every one ``O`` or a prefixed type, and a type among them?"""
    tagged = [name for name in names if _TAG.fullmatch(name)]
    return bool(tagged) and all(name == "O" or _TAG.fullmatch(name) for name in names)


def spans(tags: Sequence[str]) -> set[Span]:
    """Return the named spans of one text's tags."""
    found: set[Span] = set()
    kind, first = "", 0
    for place, tag in enumerate([*tags, "O"]):
        match = _TAG.fullmatch(tag)
        prefix, new = (match[1], match[2]) if match else ("", "")
        if kind and (new != kind or prefix in "BS"):
            found.add((kind, first, place - 1))
            kind = ""
        if new and not kind:
            kind, first = new, place
        if new and prefix in "ES":
            found.add((kind, first, place))
            kind = ""
    return found
