"""What the system and libraries say, which know English only: what it means in the reader's language, the original in brackets.

The original stays whole, to be searched for; what is not known here is shown as it came.
"""

from __future__ import annotations

import functools
import re

from doctor.language import say
from runner.strings import fields_of
from runner.text import Text, t

_OTHER_LANGUAGE = re.compile(r"[\u2e80-\u9fff]")
_FIELD_VALUE = r"([^`'\n]+?)"
_ANY = {"wanted": "", "got": "", "name": "", "limit": "", "line": "", "column": "", "byte": "", "place": ""}

# What comes first in this list is what a text means that holds several.
_MESSAGES: tuple[Text, ...] = (
    # -- msgspec, of a value in a profile, a snapshot, a plan
    t("Expected `{wanted}`, got `{got}`", **_ANY),
    t("Expected `{wanted}` >= {limit}", **_ANY),
    t("Expected `{wanted}` > {limit}", **_ANY),
    t("Expected `{wanted}` <= {limit}", **_ANY),
    t("Expected `{wanted}` < {limit}", **_ANY),
    t("Expected `{wanted}` of length", **_ANY),
    t("Expected `{wanted}` matching regex", **_ANY),
    t("Expected `{wanted}`", **_ANY),
    t("Object missing required field `{name}`", **_ANY),
    t("Object contains unknown field `{name}`", **_ANY),
    t("Invalid enum value '{name}'", **_ANY),
    t("JSON is malformed"),
    t("Input data was truncated"),
    # -- json, tomllib: where a file stops to make sense
    t("Unexpected UTF-8 BOM"),
    t("line {line} column {column} (char", **_ANY),
    t("(at line {line}, column {column})", **_ANY),
    t("(at end of document)"),
    # -- Python, of a script or a text file
    t("codec can't decode byte {byte} in position {place}:", **_ANY),
    t("codec can't encode"),
    t("'{name}' was never closed", **_ANY),
    t("unterminated string literal"),
    t("unterminated triple-quoted string literal"),
    t("unexpected indent"),
    t("unindent does not match any outer indentation level"),
    t("expected an indented block"),
    t("inconsistent use of tabs and spaces in indentation"),
    t("Missing parentheses in call to 'print'"),
    t("unexpected EOF while parsing"),
    t("invalid syntax"),
    t("No module named '{name}'", **_ANY),
    t("No closing quotation"),
    # -- the dynamic linker
    t("version `{name}' not found", **_ANY),
    t("undefined symbol: {name}", **_ANY),
    t("cannot open shared object file: No such file or directory"),
    # -- name service, network
    t("Temporary failure in name resolution"),
    t("Name or service not known"),
    t("Connection refused"),
    t("Connection reset by peer"),
    t("Connection timed out"),
    t("Network is unreachable"),
    t("No route to host"),
    t("Address already in use"),
    t("certificate verify failed"),
    t("timed out"),
    # -- errno
    t("No such file or directory"),
    t("Permission denied"),
    t("Operation not permitted"),
    t("No space left on device"),
    t("Disk quota exceeded"),
    t("Read-only file system"),
    t("Input/output error"),
    t("Is a directory"),
    t("Not a directory"),
    t("File exists"),
    t("Directory not empty"),
    t("File name too long"),
    t("File too large"),
    t("Too many open files in system"),
    t("Too many open files"),
    t("Too many levels of symbolic links"),
    t("Cannot allocate memory"),
    t("Resource temporarily unavailable"),
    t("Device or resource busy"),
    t("Text file busy"),
    t("Stale file handle"),
    t("Transport endpoint is not connected"),
    t("Exec format error"),
    t("Argument list too long"),
    t("Invalid argument"),
    t("Invalid cross-device link"),
    t("Operation not supported"),
    t("Function not implemented"),
    t("No such process"),
    t("No such device or address"),
    t("No such device"),
    t("Broken pipe"),
)


def explained(words: str) -> str:
    """Return ``words`` behind what they mean; unchanged where that is not known, or they are translated already."""
    if not words or _OTHER_LANGUAGE.search(words):
        return words
    for pattern, message in _patterns():
        found = pattern.search(words)
        if found:
            return f"{say(Text(message.msgid, found.groupdict()))}（{words}）"
    return words


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], Text], ...]:
    return tuple((re.compile(_regex_of(message.msgid), re.IGNORECASE), message) for message in _MESSAGES)


def _regex_of(msgid: str) -> str:
    """Return the pattern of a message: its fields are what stands there."""
    # Expected `{wanted}` >= {limit}   ->   Expected\ `(?P<wanted>...)`\ >=\ (?P<limit>...)(?=$|\s)
    regex = re.escape(msgid)
    for name in fields_of(msgid):
        regex = regex.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{_FIELD_VALUE[1:-1]})")
    return regex + (r"(?=$|\s)" if msgid.endswith("}") else "")
