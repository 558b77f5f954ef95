"""The bytes that a script is stored in: can Python read them at all."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from doctor.checks.versions import below
from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.model import Level, Text, t

# # -*- coding: gbk -*-
_DECLARED = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")


# Up to 3.10 Python passed over such bytes in a comment; read on 3.7, 3.8, 3.10 (started) and 3.11, 3.12, 3.13 (refused).
_COMMENTS_READ_SINCE = "3.11"


@rule
def source_encoding(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are the script's bytes of the encoding that it declares, UTF-8 where it declares none?"""
    if not script.undecodable:
        return
    comments = _comments(script)
    in_code = [line for line, column in script.undecodable if column < comments.get(line, column + 1)]
    python = _python_of(installed)
    level: Level = "fail"
    if not in_code:
        old = below(python, _COMMENTS_READ_SINCE)
        level = "note" if old else "warn" if old is None else "fail"
    declared = next((match[1] for text in script.lines[:2] if (match := _DECLARED.match(text))), "")
    advice = t("Store it as UTF-8: iconv -f GB18030 -t UTF-8 {script} > utf8.py", script=script.path)
    line = in_code[0] if in_code else script.undecodable[0][0]
    yield problem("script-not-decodable", level, line, _title(level, declared), advice)


def _title(level: Level, declared: str) -> Text:
    if level != "fail":
        return t(
            "A comment holds bytes that are not {encoding}: Python 3.11 and newer do not start the script (SyntaxError).",
            encoding=declared or "UTF-8",
        )
    if declared:
        return t(
            "The script declares {encoding} and has bytes that are not: Python does not start it (SyntaxError).",
            encoding=declared,
        )
    return t(
        "The script is not UTF-8 and declares no encoding: Python does not start it (SyntaxError: Non-UTF-8 code)."
    )


def _python_of(installed: Installed) -> str | None:
    python = installed.snapshot.facts.python.value if installed.snapshot else None
    return python.version if python else None


def _comments(script: Script) -> dict[int, int]:
    """Return line -> the column at which its comment begins; empty where the script has no end."""
    text = "\n".join(script.lines) + "\n"
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return {}
    return {token.start[0]: token.start[1] for token in tokens if token.type == tokenize.COMMENT}
