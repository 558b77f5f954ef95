"""Plain string work that needs no library: filling fields, and making names from a machine safe to show."""

from __future__ import annotations

import re
from collections.abc import Mapping

# {name}, {name!t} (words of ours, said in the reader's language), {name!d} (seconds, said as a duration), and
# {name:finding|findings}: the word for one, and the word for any other number
_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)(?:!(t|d)|:([^{}|]*)\|([^{}|]*))?\}")
_OURS = re.compile(r"\{([a-z_][a-z0-9_]*)!t\}")
_DURATION = re.compile(r"\{([a-z_][a-z0-9_]*)!d\}")

UNITS = ("s", "m", "h")


def fields_of(msgid: str) -> list[str]:
    """Return the field names of ``msgid`` in order of appearance."""
    return [match[1] for match in _FIELD.finditer(msgid)]


def translated_fields(msgid: str) -> list[str]:
    """Return the fields whose value is itself words of ours: ``{meaning!t}``."""
    return _OURS.findall(msgid)


def duration_fields(msgid: str) -> list[str]:
    """Return the fields whose value is a number of seconds, to be said as a duration: ``{silent!d}``."""
    return _DURATION.findall(msgid)


def human_seconds(seconds: float | None, units: tuple[str, str, str] = UNITS) -> str:
    """Return a duration as ``45 s``, ``3 m 05 s``, ``2 h 07 m``; ``?`` when unknown."""
    if seconds is None:
        return "?"
    whole, (second, minute, hour) = int(seconds + 0.5), units
    if whole < 60:
        return f"{whole} {second}"
    if whole < 3600:
        return f"{whole // 60} {minute} {whole % 60:02d} {second}"
    return f"{whole // 3600} {hour} {whole % 3600 // 60:02d} {minute}"


def fill(template: str, params: Mapping[str, object]) -> str:
    """Put ``params`` into ``template``; only plain ``{name}`` fields are fields, every other brace is text.

    ``{count} {count:finding|findings}`` chooses the word by the number; a language without plurals leaves it out.
    """
    return _FIELD.sub(lambda match: _filled(match, params), template)


def _filled(match: re.Match[str], params: Mapping[str, object]) -> str:
    name, form, one, many = match.groups()
    if name not in params:
        return match[0]
    value = params[name]
    if form == "d" and isinstance(value, (int, float)):
        return human_seconds(value)
    return str(value) if one is None else one if str(value) == "1" else many


# ESC, C0/C1 controls, DEL, surrogates, bidirectional overrides: what a name from a machine must never do to a terminal.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def printable(text: str) -> str:
    """Return ``text`` safe to show and to store: control characters and undecodable bytes become ``\\xNN`` escapes.

    The escape is lossless (a backslash becomes two), so a GBK file name read with ``surrogateescape`` survives a
    round trip through JSON: see :func:`unescape`.
    """
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return _UNPRINTABLE.sub(_escape_character, text.replace("\\", "\\\\"))


def shown(text: str) -> str:
    """Return one line of ``text`` safe for a terminal: what :func:`printable` escapes is escaped, backslashes stay.

    For showing only: a name that was stored with :func:`printable` reads as it was stored.
    """
    return text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


_ESCAPE = re.compile(r"\\(\\|x[0-9a-f]{2}|u[0-9a-f]{4})")


def unescape(text: str) -> str:
    """Undo :func:`printable`; bytes that were undecodable come back as ``surrogateescape`` characters."""

    def character(match: re.Match[str]) -> str:
        body = match[1]
        if body == "\\":
            return "\\"
        code = int(body[1:], 16)
        return chr(code + 0xDC00 if body[0] == "x" and code >= 0x80 else code)

    return _ESCAPE.sub(character, text)
