"""The real program in a real terminal: a tmux server of a test's own, and the command line that starts the view."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = (
    "from doctor.language import use_language; use_language('en');"
    "from doctor.tui.app import run_app; raise SystemExit(run_app(run={run!r}, facts={facts!r}))"
)


class Tmux:
    """One tmux server of our own, so that no other session is touched."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    def __call__(self, *words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", str(self.socket), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout

    def sees(self, *words: str) -> str:
        """Wait until the pane shows all ``words``; fail with what it shows."""
        text = ""
        for _ in range(300):
            text = self("capture-pane", "-p")
            if all(word in text for word in words):
                return text
            time.sleep(0.05)
        raise AssertionError(f"never seen: {words}\n{text}")

    def end(self) -> None:
        command = ["tmux", "-S", str(self.socket), "kill-server"]
        subprocess.run(command, capture_output=True, timeout=20, check=False)


def new_tmux(folder: Path) -> Tmux:
    """Return a server whose socket is in ``folder``; the test is skipped where there is no tmux."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    return Tmux(folder / "s")


def command(run: str | None = None, facts: Path | None = None) -> list[str]:
    program = PROGRAM.format(run=run, facts=facts).replace("PosixPath", "__import__('pathlib').Path")
    return [sys.executable, "-c", program]
