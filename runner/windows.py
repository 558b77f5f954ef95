"""Spans of time folded from events: the newest hour in buckets, and the whole run in one. Both are bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from runner.events import RunEvent, amount, rows, table
from runner.window import Window

BUCKET_S = 5.0
BUCKETS = 720
"""An hour of buckets: enough for a few steps of a very slow run."""
RECENT_S = 60.0
"""What a run does now: long enough to smooth single steps, short enough to follow a change."""
RECENT_STEPS = 10
"""A slower run is looked at over so many steps instead."""


class Windows:
    """The newest hour in buckets, and the whole run."""

    def __init__(self) -> None:
        self.whole = Window()
        self._buckets: deque[tuple[float, Window]] = deque(maxlen=BUCKETS)
        self._source = ""
        self._spoke_at: float | None = None

    def add(self, event: RunEvent) -> None:
        """Fold one event in; of several writers of steps the first rank counts, a callback more than a log."""
        kind = event.kind
        if kind.startswith("sample-"):
            if kind == "sample-gpu":
                self._each(event.t, lambda window: window.add_gpus(rows(event.data.get("gpus"))))
            elif kind == "sample-host":
                self._each(event.t, lambda window: window.add_host(event.data))
            elif kind == "sample-stacks":
                self._each(event.t, lambda window: window.add_stacks(event.data))
        elif kind == "run-started":
            self._buckets.clear()
            self._spoke_at = event.t
        elif kind in ("step", "evaluation", "checkpoint") and self._counts(event):
            if kind == "step" and not self.whole.steps:  # what was seen before is imports and loading
                self.whole = Window()
                self._buckets.clear()
            self._add_words(event)

    def pause(self) -> None:
        """What was between the last word and the next is not known."""
        self._spoke_at = None

    def _counts(self, event: RunEvent) -> bool:
        if event.kind == "step" and (not self._source or (self._source == "log" and event.source != "log")):
            self._source = event.source
        return event.source == (self._source or event.source)

    def _add_words(self, event: RunEvent) -> None:
        seconds = amount(event.data.get("seconds")) or 0.0
        span = seconds if self._spoke_at is None else max(0.0, event.t - self._spoke_at)
        self._spoke_at = event.t
        split = table(event.data.get("split")) if event.kind == "step" else {}
        parts = [(name, amount(part) or 0.0) for name, part in split.items()]
        for window in (self.whole, self._bucket(event.t)):
            window.span_s += span
            if event.kind == "step":
                window.steps += 1
                split_s = window.split_s
                for name, part in parts:
                    split_s[name] = split_s.get(name, 0.0) + part
            elif event.kind == "evaluation":
                window.evaluation_s += seconds
            else:
                window.saving_s += min(seconds, span)  # written in the background, a save holds nothing up

    def _each(self, at: float, do: Any) -> None:
        do(self.whole)
        do(self._bucket(at))

    def _bucket(self, at: float) -> Window:
        begin = at // BUCKET_S * BUCKET_S
        if not self._buckets or self._buckets[-1][0] < begin:
            self._buckets.append((begin, Window()))
        return self._buckets[-1][1]

    def recent(self) -> Window:
        """Return the newest minute, or the newest ten steps where they took longer."""
        merged, wanted = Window(), min(RECENT_STEPS, self.whole.steps)
        newest = self._buckets[-1][0] if self._buckets else 0.0
        for begin, window in reversed(self._buckets):
            if newest - begin >= RECENT_S and merged.steps >= wanted:
                break
            merged.merge(window)
        return merged

    def since(self, at: float) -> Window:
        """Return what was seen from ``at`` (seconds since the epoch) on."""
        merged = Window()
        for begin, window in self._buckets:
            if begin >= at:
                merged.merge(window)
        return merged

    def still(self, is_still: Callable[[Window], bool]) -> tuple[float, Window]:
        """Return for how many seconds, up to the newest bucket, every bucket was ``is_still``, and what was seen in that time."""
        merged, since = Window(), None
        for begin, window in reversed(self._buckets):
            if not is_still(window):
                break
            merged.merge(window)
            since = begin
        return (0.0 if since is None else self._buckets[-1][0] + BUCKET_S - since), merged
