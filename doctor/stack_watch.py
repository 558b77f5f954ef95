"""Looks at the stacks of a trainer in windows, one after another at a pace that the run can bear, and folds each into one record."""

from __future__ import annotations

from typing import Any

from doctor.call_tree import call_trees
from doctor.gil import gil_shares, is_due
from doctor.pace import Pace
from doctor.probes.trainer_of import BusiestPython
from doctor.pyspy import Sample, Window
from doctor.pyspy_errors import Trouble
from doctor.stacks import hottest, where_time_goes

RETRY_S = 60.0
"""What failed for a lasting reason (no py-spy, not permitted) is tried again after so long."""


class StackWatch:
    """Gives the ``data`` of ``sample-stacks``. Never blocks; one window at a time is under way."""

    def __init__(self, pid: int, pace: Pace, below: bool, begin: float, retry_s: float = RETRY_S) -> None:
        """``below``: the process itself does not compute, those below it do. ``begin``: monotonic time of the first window."""
        self.pid, self.pace = pid, pace
        self._busiest = BusiestPython(pid) if below else None
        self._retry_s = retry_s
        self._window: Window | None = None
        self._next = begin
        self._barred_until = begin
        """What failed is not tried again before."""
        self._windows = 0
        self._gil: dict[str, Any] = {}
        """The newest shares, told with each sample of stacks."""

    @property
    def trainer(self) -> int:
        """Whose main thread is looked at now."""
        return self._busiest.find() if self._busiest else self.pid

    @property
    def is_looking(self) -> bool:
        return self._window is not None

    def look(self, now: float, without_pause: bool = False) -> dict[str, Any] | None:
        """Return what a window gave that has ended since the last call, or why it gave nothing; None: there is no news.

        ``without_pause``: the next window begins at once, as for a run that stands still: it loses nothing by it.
        """
        if self._window is None and now >= (self._barred_until if without_pause else self._next):
            self._begin()
        window = self._window
        sample = window.poll() if window else None
        if window is None or sample is None:
            return None
        self._window = None
        if sample.trouble:
            self._next = now + (self._retry_s if sample.trouble.lasting else window.seconds)
            self._barred_until = self._next
            return _why(sample.trouble)
        self.pace.learn_window(sample.cpu_s, sample.wall_s)
        if window.gil_only:  # the next one comes at once: the newest minute must not be without stacks
            self._gil = gil_shares(window.pid, sample.stacks, sample.errors, window.seconds, window.rate)
            return None
        self._next = now + self.pace.pause_s
        return self._told(sample)

    def stop(self) -> dict[str, Any] | None:
        """End the window under way; return what it saw, if anything."""
        window, self._window = self._window, None
        if window is None:
            return None
        sample = window.stop()
        return self._told(sample) if sample.stacks and not window.gil_only else None

    def _begin(self) -> None:
        self._window = Window(
            self.trainer, self.pace.window_s, self.pace.rate, gil_only=is_due(self._windows)
        )
        self._windows += 1

    def _told(self, sample: Sample) -> dict[str, Any]:
        frames = [
            {key: value for key, value in frame.items() if value != ""} for frame in hottest(sample.stacks)
        ]
        told = {"samples": sample.samples, "errors": sample.errors, "frames": frames}
        return told | {"trees": call_trees(sample.stacks)} | where_time_goes(sample.stacks) | self._gil


def _why(trouble: Trouble) -> dict[str, Any]:
    return {"samples": 0, "errors": 0, "frames": [], "trouble": trouble.kind, "why": trouble.why}
