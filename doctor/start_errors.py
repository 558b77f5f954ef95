"""Why a run cannot be made or started, as an error with its sentence."""

from __future__ import annotations

from runner.text import Text


class LaunchError(Exception):
    """A run cannot be made or started. ``text`` says why and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text
