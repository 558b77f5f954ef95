"""What the doctor says of a text that a person pastes: each explanation as one string, the first one first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from doctor.explain import explain
from doctor.language import say
from doctor.model import Text


def said_of(text: str) -> list[str]:
    """Return an explanation a kind: its id, meaning and advice, in English."""
    return [
        f"{item.match.id}: {_words(item.match.meaning)} {_words(item.match.advice)}"
        for item in explain(text).known
    ]


def _words(text: Text | None) -> str:
    return "" if text is None else say(text)


def matched(row: Mapping[str, Any], said: list[str]) -> bool:
    """Whether the first explanation says what ``row`` asks for; a reader in a hurry reads no second one."""
    return bool(said) and re.search(row["says"], said[0], re.IGNORECASE | re.DOTALL) is not None
