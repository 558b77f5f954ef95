"""The pattern table as a whole: collecting it, and matching a text against it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

from doctor.explain.forms import only_quotes
from doctor.explain.words import longest_piece, required_words, stays_in_line, vocabulary
from doctor.model import Record, Text

# RuntimeError: CUDA error: ...   |   ERROR: No matching distribution ...   |   Bus error (core dumped)   |   Killed
ERROR_LINE = re.compile(
    r"^\s*(?:\[rank\d+\]:\s*)?[\w.]*(?:Error|Exception|Warning|Interrupt|Exit)\b.*|\berror\b|^Killed$|Bus error|\bFATAL\b",
    re.I,
)


ERROR_WORDS = ("error", "exception", "warning", "interrupt", "exit", "killed", "fatal")
"""One of these stands in every such line, in lower case."""


BEFORE_WORD, AFTER_WORD = 2000, 4000
"""Characters of a line around a word that a match needs; an error's own sentence is shorter."""


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
    cleared_by: str = ""
    """What, in a later line, says that it passed; may name the groups of ``regex`` as fields."""
    general: bool = False
    """Says that something failed more than what: it stands behind the other kinds, and is left out where one of them shares its lines."""


class Match(Record, frozen=True):
    id: str
    line: str
    line_number: int
    meaning: Text
    advice: Text | None = None
    confirms: tuple[str, ...] = ()
    extracted: dict[str, str] = {}


SUBJECTS = (
    "gpu", "gpu_faults", "devices", "containers", "cuda_libraries", "communication", "ranks", "sharding", "kernels",
    "memory", "disks", "packages", "imports", "old_code", "versions", "hugging_face", "models", "own_code",
    "model_files", "adapters", "serving", "vllm_requests", "llama_factory", "trainer_arguments", "tokenizing",
    "training", "checkpoints", "shapes", "tensors", "dataset_files", "data", "text_files", "building", "toolchain",
    "compiling", "installers", "conda_and_apt", "windows", "mirrors", "hubs", "hub_access", "network", "remote",
    "notebooks", "clusters", "shells", "frameworks", "training_programs", "pictures", "processes",
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
    found: list[tuple[Pattern, re.Match[str]]] = []
    words = vocabulary(text)
    for pattern in all_patterns():
        hit = last_match(pattern.regex, text, words)
        if hit is not None and not _cleared(pattern, hit, text):
            found.append((pattern, hit))
    hidden = {name for pattern, _ in found for name in pattern.hides}
    told = [(pattern, hit) for pattern, hit in found if pattern.id not in hidden]
    plain = [hit for pattern, hit in told if not pattern.general]
    kept = [item for item in told if not (item[0].general and _shares_lines(item[1], plain))]
    kept.sort(key=lambda item: (item[0].general, -item[1].start()))
    return [_match(pattern, hit, text) for pattern, hit in kept]


def _shares_lines(hit: re.Match[str], others: list[re.Match[str]]) -> bool:
    return any(other.start() < hit.end() and hit.start() < other.end() for other in others)


def _cleared(pattern: Pattern, hit: re.Match[str], text: str) -> bool:
    """Whether a later line of ``text`` says that the trouble passed."""
    if not pattern.cleared_by:
        return False
    names = {name: re.escape(value) for name, value in hit.groupdict().items() if value is not None}
    return re.search(pattern.cleared_by.format_map(names), text[hit.end() :]) is not None


def last_match(regex: str, text: str, words_of_text: str | None = None) -> re.Match[str] | None:
    """Return the last match of ``regex`` in ``text``, a log of any size; ``^`` and ``$`` are a line's.

    Only what holds one of the strings that a match needs is looked at, from the end, a line at a time where a match
    cannot be longer than that. ``words_of_text`` is the text's :func:`vocabulary`, for who asks often.
    """
    needed = required_words(regex)
    known = text if words_of_text is None else words_of_text
    words = [word for word in needed if longest_piece(word) in known and word in text]
    if needed and not words:
        return None
    if not needed or not stays_in_line(regex):
        hits = list(re.finditer(regex, text, re.MULTILINE))
        return hits[-1] if hits else None
    pattern = re.compile(regex, re.MULTILINE)
    for begin, end in _lines_with(words, text):
        hits = [hit for hit in pattern.finditer(text, begin, end) if not only_quotes(text, hit.start())]
        if hits:
            return hits[-1]
    return None


def _lines_with(words: list[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each line that holds one of ``words``, the last line first.

    Of a line without end (a progress bar's, a dumped array) only what stands around the word.
    """
    places = {word: text.rfind(word) for word in words}
    while (place := max(places.values())) >= 0:
        begin = max(text.rfind("\n", 0, place) + 1, place - BEFORE_WORD)
        end = text.find("\n", place, place + AFTER_WORD)
        yield begin, end if end >= 0 else min(place + AFTER_WORD, len(text))
        places = {word: text.rfind(word, 0, begin) if at >= begin else at for word, at in places.items()}


def _match(pattern: Pattern, hit: re.Match[str], text: str) -> Match:
    fields = {name: value for name, value in hit.groupdict().items() if value is not None}
    return Match(
        id=pattern.id,
        line=_line_of(hit, text),
        line_number=text.count("\n", 0, hit.start()) + 1,
        meaning=_bound(pattern.meaning, fields),
        advice=_bound(pattern.advice, fields) if pattern.advice else None,
        confirms=pattern.confirms,
        extracted=fields,
    )


SHOWN_BEFORE, SHOWN = 100, 500
"""Characters of a line: how many before the match where it has more, and how many in all."""


def _line_of(hit: re.Match[str], text: str) -> str:
    """Return the match's line to show; what a progress bar wrote over (up to a carriage return) is no part of it."""
    begin = max(text.rfind("\n", 0, hit.start()), text.rfind("\r", 0, hit.start())) + 1
    if hit.start() - begin > SHOWN - SHOWN_BEFORE:
        begin = hit.start() - SHOWN_BEFORE
    end = text.find("\n", hit.end())
    return text[begin : end if end >= 0 else len(text)].strip(" \t\r\n\0")[:SHOWN]


def _bound(text: Text, fields: dict[str, str]) -> Text:
    known = {name: fields.get(name, value) for name, value in text.params.items()}
    return Text(text.msgid, {**text.params, **known})
