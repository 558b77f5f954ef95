"""Words, signs and colours of levels and statuses. A sign and a word always stand with the colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doctor.language import say
from doctor.render.text import level_word, printable_text
from runner.strings import printable
from runner.text import Text

LEVEL_SIGNS = {"fail": "✗", "warn": "!", "note": "·", "unknown": "?"}
LEVEL_STYLES = {"fail": "bold red", "warn": "bold yellow", "note": "cyan", "unknown": "bold magenta"}
STATUS_SIGNS = {
    "starting": "…", "running": "▶", "stalled": "!", "stopped": "■", "interrupted": "■", "ended": "■", "completed": "✓",
    "failed": "✗", "non-finite": "✗", "lost": "?", "damaged": "✗", "unreadable": "?",
}  # fmt: skip
STATUS_STYLES = {
    "starting": "", "running": "bold green", "stalled": "bold yellow", "stopped": "bold", "interrupted": "bold", "ended": "bold",
    "completed": "bold green", "failed": "bold red", "non-finite": "bold red", "lost": "bold magenta", "damaged": "bold red",
    "unreadable": "bold magenta",
}  # fmt: skip


def level_label(level: str) -> str:
    """Return sign and word of a level: ``✗ FAIL``."""
    return f"{LEVEL_SIGNS.get(level, '·')} {level_word(level)}"


def status_label(status: str) -> str:
    """Return sign and word of a run's status; a status of a newer runner is shown as it is."""
    words = {
        "starting": say("starting"),
        "running": say("running"),
        "stalled": say("stalled"),
        "stopped": say("stopped"),
        "interrupted": say("stopped by hand"),
        "ended": say("process ended"),
        "completed": say("completed"),
        "failed": say("failed"),
        "non-finite": say("loss not finite"),
        "lost": say("process gone"),
        "damaged": say("damaged"),
        "unreadable": say("not readable"),
    }
    return f"{STATUS_SIGNS.get(status, '·')} {words.get(status, printable(status))}"


def words_of(value: Any) -> str:
    """Return a sentence from an event's data: a Text (record or ``{msgid, params}``), or the text itself."""
    if isinstance(value, dict) and isinstance(value.get("msgid"), str):
        params = value.get("params")
        value = Text(value["msgid"], params if isinstance(params, dict) else {})
    if isinstance(value, Text):
        return printable_text(say(value))
    return "" if value is None else printable_text(str(value))


def one_line(value: Any) -> str:
    return " ".join(words_of(value).split())


def error_of(finished: Mapping[str, Any]) -> str:
    """Return why a run ended, in the user's language where the trainer told it as a sentence of ours."""
    return one_line(finished.get("error_text")) or one_line(finished.get("error"))
