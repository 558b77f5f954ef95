"""The pattern table as a whole: collecting it, and matching a text against it."""

from __future__ import annotations

import importlib
import re

from doctor.model import Record, Text

# RuntimeError: CUDA error: ...   |   ERROR: No matching distribution ...   |   Bus error (core dumped)   |   Killed
ERROR_LINE = re.compile(
    r"^\s*(?:\[rank\d+\]:\s*)?[\w.]*(?:Error|Exception|Warning|Interrupt|Exit)\b.*|\berror\b|^Killed$|Bus error|\bFATAL\b",
    re.I,
)


class Pattern(Record, frozen=True):
    """One kind of failure. ``regex`` may name groups; they become fields of ``meaning`` and ``advice``."""

    id: str
    regex: str
    meaning: Text
    advice: Text | None = None
    confirms: tuple[str, ...] = ()
    """Ids of findings that, found on the machine, are the cause."""
    hides: tuple[str, ...] = ()
    """Ids of more general patterns that this one makes superfluous."""


class Match(Record, frozen=True):
    id: str
    line: str
    line_number: int
    meaning: Text
    advice: Text | None = None
    confirms: tuple[str, ...] = ()
    extracted: dict[str, str] = {}


SUBJECTS = (
    "gpu", "cuda_libraries", "communication", "memory", "packages", "hugging_face", "training", "data",
)  # fmt: skip
"""The modules of the table, most specific first."""


def all_patterns() -> tuple[Pattern, ...]:
    """Return every pattern, most specific subjects first."""
    return tuple(
        pattern for name in SUBJECTS for pattern in importlib.import_module(f"doctor.explain.{name}").PATTERNS
    )


def matches(text: str) -> list[Match]:
    """Return the kinds that ``text`` shows, each once (its last occurrence); what a more telling kind hides is left out.

    Later lines come first: the error that ended the run is what the person asks about.
    """
    found: dict[str, tuple[int, Match]] = {}
    hidden: set[str] = set()
    for pattern in all_patterns():
        hits = list(re.finditer(pattern.regex, text, re.MULTILINE))
        if hits:
            found[pattern.id] = (hits[-1].start(), _match(pattern, hits[-1], text))
            hidden.update(pattern.hides)
    kept = [item for kind, item in found.items() if kind not in hidden]
    return [match for _, match in sorted(kept, key=lambda item: -item[0])]


def _match(pattern: Pattern, hit: re.Match[str], text: str) -> Match:
    begin = text.rfind("\n", 0, hit.start()) + 1
    end = text.find("\n", hit.end())
    fields = {name: value for name, value in hit.groupdict().items() if value is not None}
    return Match(
        id=pattern.id,
        line=text[begin : end if end >= 0 else len(text)].strip()[:500],
        line_number=text.count("\n", 0, hit.start()) + 1,
        meaning=_bound(pattern.meaning, fields),
        advice=_bound(pattern.advice, fields) if pattern.advice else None,
        confirms=pattern.confirms,
        extracted=fields,
    )


def _bound(text: Text, fields: dict[str, str]) -> Text:
    known = {name: fields.get(name, value) for name, value in text.params.items()}
    return Text(text.msgid, {**text.params, **known})
