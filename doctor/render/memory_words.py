"""A run's memory, foretold and measured, in one line: for watch, report and the full-screen view. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doctor.language import say
from doctor.render.layout import human_bytes
from runner.events import number
from runner.text import t
from runner.verdict import device_is_gpu


def memory_label(started: Mapping[str, Any]) -> str:
    """Return whose memory a run's is: a card's, or where it trains on the CPU the host's."""
    return say("host memory") if device_is_gpu(dict(started)) is False else say("memory")


def memory_words(memory: Mapping[str, Any], why: str) -> str:
    """Return what a ``memory`` event says; empty: nothing was measured. ``why``: in words, why nothing was foretold."""
    measured = number(memory.get("measured_bytes"))
    if not measured:
        return ""
    shape = {"samples": memory.get("samples") or "?", "length": memory.get("length") or "?"}
    foretold = number(memory.get("predicted_bytes"))
    if not foretold:
        line = say(
            t("{measured} measured ({samples} x {length} tokens)", measured=human_bytes(measured), **shape)
        )
        return f"{line}; {why}" if why else line
    apart = f"{100 * (measured / foretold - 1):+.0f} %"
    line = say(
        t("{measured} measured, {foretold} foretold ({apart}; {samples} x {length} tokens)", measured=human_bytes(measured),
          foretold=human_bytes(foretold), apart=apart, **shape)
    )  # fmt: skip
    worst = number(memory.get("worst_bytes"))
    if worst and worst > foretold:
        line += say(t(", {worst} for the longest", worst=human_bytes(worst)))
    return line
