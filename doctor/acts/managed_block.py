"""The file of variables that the doctor keeps and a shell sources, and the one line that sources it. Pure text work."""

from __future__ import annotations

import re
import shlex

HEADER = (
    "# Kept by `doctor fix`: one line a variable. `doctor undo` takes them out again.\n"
    "# A shell reads this file by the marked line in its start file; in a running one: . THIS_FILE\n"
)
MARK = "# added by rundoctor"

# export HF_HOME='/root/autodl-tmp/hf'  |  unset LD_LIBRARY_PATH
_LINE = re.compile(r"^(?:export (?P<set>\w+)=|unset (?P<unset>\w+)\s*$)")


def variable_line(name: str, value: str | None) -> str:
    """Return the shell line that gives ``name`` its ``value``; None unsets it."""
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"


def with_variable(content: str, name: str, value: str | None) -> str:
    """Return the file's text with ``name`` at ``value``: its line in its old place, else a new one at the end."""
    lines, wanted = _lines(content or HEADER), variable_line(name, value)
    place = _place(lines, name)
    if place is None:
        return "".join([*lines, wanted + "\n"])
    lines[place] = wanted + "\n"
    return "".join(lines)


def taken_back(content: str, name: str, value: str | None, before: str) -> str | None:
    """Return the text with the line of ``name`` as it was in ``before``; None where it is not what was set."""
    lines, ours = _lines(content), variable_line(name, value) + "\n"
    place, old = _place(lines, name), line_of(before, name)
    if place is None or lines[place] != ours:
        return None
    lines[place : place + 1] = [old] if old else []
    return "".join(lines)


def line_of(content: str, name: str) -> str:
    """Return the line of ``name``, its end included; empty: there is none."""
    lines = _lines(content)
    place = _place(lines, name)
    return "" if place is None else lines[place]


def _lines(content: str) -> list[str]:
    lines = content.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def _place(lines: list[str], name: str) -> int | None:
    for index, line in enumerate(lines):
        match = _LINE.match(line)
        if match and name in (match["set"], match["unset"]):
            return index
    return None


def marked(line: str) -> str:
    return f"{line}  {MARK}"


def with_line(content: str, line: str) -> str:
    """Return the text with the marked ``line`` as its last one; unchanged where it stands in it already."""
    wanted = marked(line)
    if wanted in content.splitlines():
        return content
    gap = "" if not content or content.endswith("\n") else "\n"
    return f"{content}{gap}{wanted}\n"


def without_line(content: str, line: str) -> str | None:
    """Return the text without the marked ``line``; None where it is not in it."""
    lines, wanted = content.splitlines(keepends=True), marked(line)
    kept = [one for one in lines if one.rstrip("\n") != wanted]
    return None if len(kept) == len(lines) else "".join(kept)
