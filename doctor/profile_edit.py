"""A profile's text with some keys set anew; comments and everything else stay as they are. Pure.

Only ``[section]`` tables with ``key = value`` lines are known; whoever writes the result reads it back first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# [train]   |   [model.files]
_TABLE = re.compile(r"^\s*\[(?P<name>[^\[\]]+)\]\s*(?:#.*)?$")
# precision = "auto"  # as the card can   ->   the comment; a value over several lines has none
_COMMENT = re.compile(r"""^[^=]*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#])*(?P<comment>(?<=\s)\#.*)$""")


def with_keys(text: str, settings: Mapping[str, Any]) -> str:
    """Return ``text`` with ``section.key`` set to each value; None takes a key out."""
    lines = text.splitlines()
    for key, value in settings.items():
        section, _, name = key.partition(".")
        lines = _with_key(lines, section, name, value)
    return "\n".join(lines) + "\n"


def _with_key(lines: Sequence[str], section: str, name: str, value: Any) -> list[str]:
    begin, end = _section(lines, section)
    line = [] if value is None else [f"{name} = {toml_value(value)}"]
    if begin is None:
        return [*lines, "", f"[{section}]", *line] if line else list(lines)
    key = re.compile(rf"^(?P<indent>\s*){re.escape(name)}\s*=")  # precision = "auto"  # as the card can
    for index in range(begin, end):
        if match := key.match(lines[index]):
            kept = [match["indent"] + one + _comment(lines[index]) for one in line]
            return [*lines[:index], *kept, *lines[index + 1 :]]
    while end > begin and not lines[end - 1].strip():
        end -= 1
    return [*lines[:end], *line, *lines[end:]]


def _comment(line: str) -> str:
    """Return the comment that a line ends with, and the blanks before it; nothing where there is none."""
    match = _COMMENT.match(line)
    return line[len(line[: match.start("comment")].rstrip()) :] if match else ""


def _section(lines: Sequence[str], section: str) -> tuple[int | None, int]:
    """Return the lines of a section's body; (None, 0): there is no such section."""
    begin = None
    for index, line in enumerate(lines):
        match = _TABLE.match(line)
        if match is None:
            continue
        if begin is not None:
            return begin, index
        if match["name"].strip() == section:
            begin = index + 1
    return begin, len(lines) if begin is not None else 0


def toml_value(value: Any) -> str:
    """Return a number, boolean, string or list of them as TOML; a JSON string is a TOML string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return repr(value)
    raise ValueError(f"no TOML for {type(value).__name__}")
