"""The countdown of --on-finish leaves its line behind whole, however fast what follows is over."""

from __future__ import annotations

import io
import os
import sys
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from doctor.commands.countdown import Countdown


@pytest.mark.parametrize(
    "states", [("waiting", "done"), ("waiting", "running", "done"), ("waiting", "cancelled")]
)
def test_what_comes_behind_the_countdown_begins_a_line(
    monkeypatch: pytest.MonkeyPatch, states: tuple[str, ...]
) -> None:
    reading, _ = os.pipe()
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    monkeypatch.setattr(sys, "stderr", said)
    event: dict[str, Any] = {"command": "shutdown", "at": time.time() + 5, "state": "waiting"}
    countdown = Countdown(cast("Any", SimpleNamespace(run=None)), event)
    countdown._terminal, countdown._told = [None], "waiting"  # as on a terminal in the foreground
    for state in states:
        countdown.look({**event, "state": state})
    assert "In 5 s: shutdown" in said.getvalue()
    assert said.getvalue().endswith("\n")
