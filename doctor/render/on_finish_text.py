"""Where ``--on-finish`` is, in one line: waiting and how to cancel it, running, done, failed, cancelled."""

from __future__ import annotations

from typing import Any

from doctor.language import say
from doctor.render.layout import indent
from runner.events import number
from runner.strings import printable
from runner.text import t


def on_finish_words(data: dict[str, Any], now: float) -> str:
    """Return what an ``on-finish`` event says."""
    command, state = printable(str(data.get("command", "?"))), data.get("state")
    if state == "waiting":
        seconds = max(0, round((number(data.get("at")) or now) - now))
        path = printable(str(data.get("cancel", "?")))
        return say(t("In {seconds} s: {command}   (cancel: touch {path})", seconds=seconds, command=command, path=path))  # fmt: skip
    if state == "cancelled":
        return say(t("Cancelled; not run: {command}", command=command))
    if state == "done":
        code = number(data.get("exit_code")) or 0
        if not code:
            return say(t("Done: {command}", command=command))
        return say(t("Failed with status {code}: {command}", code=f"{code:g}", command=command))
    return say(t("Running: {command}", command=command))


def on_finish_lines(data: dict[str, Any], now: float, width: int) -> list[str]:
    """Return at most two lines of ``doctor watch``; what waits for an answer, runs or failed is marked."""
    if not data:
        return []
    is_calm = data.get("state") == "cancelled" or (data.get("state") == "done" and not data.get("exit_code"))
    return indent(on_finish_words(data, now), width, "  " if is_calm else "! ", "  ")[:2]
