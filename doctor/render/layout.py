"""Fitting words into columns: CJK-aware width and wrapping, and whether colour is wanted. No library, so it is fast."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from typing import TextIO

from doctor.language import current_units
from runner import strings

_COLOURS = {
    "fail": "1;31",
    "warn": "1;33",
    "note": "36",
    "unknown": "1;35",
    "good": "32",
    "dim": "2",
    "bold": "1",
}


_PAINT = re.compile(r"\x1b\[[0-9;]*m")


def wants_colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether ``stream`` may be coloured: a terminal, not dumb, and NO_COLOR unset (no-color.org)."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return bool(environ.get("FORCE_COLOR")) or stream.isatty()


def paint(text: str, role: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[role]}m{text}\x1b[0m" if colour else text


def columns(stream: TextIO) -> int:
    """Return the width to lay out for: the terminal's (at most 100), or COLUMNS, or 100 where it is no terminal."""
    given = os.environ.get("COLUMNS", "")
    if stream.isatty():
        return min(100, max(40, int(given) if given.isdigit() and int(given) else _terminal_columns(stream)))
    return min(100, max(40, int(given))) if given.isdigit() else 100


def _terminal_columns(stream: TextIO) -> int:
    """Not shutil's way, which loads every compression there is."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 100
    except (OSError, ValueError):
        return 100


def display_width(text: str) -> int:
    """Return how many terminal columns ``text`` takes: two for wide characters, none for combining ones and colours."""
    if "\x1b" in text:
        text = _PAINT.sub("", text)
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int) -> str:
    """Return ``text`` filled with spaces to ``width`` columns."""
    return text + " " * max(0, width - display_width(text))


# /opt/env/bin/python -m pip install torch==2.11.0+cu126 --index-url https://...   |   export HF_HOME=/data/hf   |   mkdir -p /data && mv /root/.cache /data/hf
_COMMAND = (
    r"(?:(?:/[\w./+-]+/)?python[\d.]* -m pip|export [A-Za-z_]+=|unset [A-Za-z_]+|mkdir -p|mv /|source /|kill \d+|conda (?:install|activate)|apt-get"
    r"|docker run|tmux new|sed -i|LD_LIBRARY_PATH=|cat /|rsync -|df -|ls -)[!-~]*(?: (?!\(|(?:or|and|until|with|where|then|if|to|says?)\b)[!-~]*[^\s.,;:!?`\u0080-\uffff])*"
)
# What may not be broken: a `command in backticks`, a word; Chinese may break between any two characters.
_ASCII_TOKEN = r"`[^`\n]*`[,.;:]?|[^\s`]+|\s+|`"
_TOKEN = r"`[^`\n]*`[,.;:，。；：]?|[\u2e80-\u9fff\uff00-\uffef\u3000-\u303f]|[^\s`\u2e80-\u9fff\uff00-\uffef\u3000-\u303f]+|\s+|`"
"""Compiled when the first Chinese line is wrapped: its sets of characters take long."""
_NEVER_FIRST = "，。；：、！？）》」』”’,.;:!?)"
_NEVER_LAST = "（《「『“‘"


def wrap(text: str, width: int, first_width: int | None = None, commands: bool = False) -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns (the first one: ``first_width``).

    A command in backticks stays whole so it can be copied; with ``commands`` so does one without. One that is longer than a
    line overflows it, and the terminal, which wraps it without a line's end, gives it back in one piece.
    """
    lines: list[str] = []
    room = width if first_width is None else first_width
    for paragraph in text.splitlines() or [""]:
        line: list[str] = []
        used = 0
        tokens = _TOKEN if max(paragraph, default="") >= "\u2e80" else _ASCII_TOKEN
        for token in re.findall(f"{_COMMAND}[,.;:]?|{tokens}" if commands else tokens, paragraph):
            if token.isspace():
                token = " " if line and line[-1] != " " else ""
            elif used and used + display_width(token) > room:
                kept = _carried_over(line, token)
                if len(kept) < len(line):
                    lines.append("".join(line[: len(line) - len(kept)]).rstrip())
                    line, room = kept, width
                    used = display_width("".join(kept))
            if token:
                line.append(token)
                used += display_width(token)
        lines.append("".join(line).rstrip())
        room = width
    return lines


def _carried_over(line: list[str], token: str) -> list[str]:
    """Return the end of ``line`` that goes to the next one with ``token``: what a sign may not be parted from, a bracket
    that opens."""
    start = len(line)
    if token[0] in _NEVER_FIRST:
        start -= 1
        while start > 0 and line[start][0] in _NEVER_FIRST:
            start -= 1
    while start > 0 and line[start - 1] in _NEVER_LAST:
        start -= 1
    return line[start:]


def indent(text: str, width: int, first: str, rest: str, commands: bool = False) -> list[str]:
    """Wrap ``text`` behind a ``first`` prefix, later lines behind ``rest`` (both count as columns)."""
    room = width - display_width(rest)
    surplus = max(0, display_width(first) - display_width(rest))
    body = wrap(text, max(20, room), max(20, room - surplus), commands)
    return [(first if index == 0 else rest) + line for index, line in enumerate(body)]


def human_bytes(count: float | None) -> str:
    """Return ``count`` bytes as people say it (binary units, ``23.6 GB``); ``?`` when unknown."""
    if count is None:
        return "?"
    for unit in ("B", "KB", "MB", "GB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit in ("B", "KB") or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"


def human_seconds(seconds: float | None) -> str:
    """Return a duration in the reader's units: ``45 s``, ``3 m 05 s``, ``2 h 07 m``; ``?`` when unknown."""
    return strings.human_seconds(seconds, current_units())
