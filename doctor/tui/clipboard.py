"""Text to where a person can paste it: tmux's own buffer where there is one, else the clipboard of the terminal (OSC 52)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from doctor.language import say
from runner.text import Text, t

PATIENCE_S = 2.0


def into_tmux(text: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Put ``text`` into tmux's buffer, and by tmux into the terminal's clipboard; False: this is no tmux, or it would not."""
    if not environ.get("TMUX"):
        return False
    command = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def copied_words(lines: int, is_in_tmux: bool) -> str:
    """Return what to say of ``lines`` that were copied."""
    words: Text = (
        t("{lines} {lines:line|lines} copied into tmux: prefix ] pastes", lines=lines)
        if is_in_tmux
        else t("{lines} {lines:line|lines} sent to the terminal's clipboard (OSC 52); where it takes none, hold Shift and select",
               lines=lines)
    )  # fmt: skip
    return say(words)
