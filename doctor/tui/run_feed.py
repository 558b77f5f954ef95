"""Reads one run for its screen, as it is and as it was. Everything here may wait for a disk and is called in the background."""

from __future__ import annotations

from collections.abc import Callable

from doctor.expectations import Expected
from doctor.tui.source import Past, Source, Watcher
from doctor.tui.view import RunView, look_at, look_back


class RunFeed:
    """``name`` is what the source takes: a path, a name or ``last``."""

    def __init__(self, source: Source, name: str, clock: Callable[[], float]) -> None:
        self._source, self._name, self._clock = source, name, clock
        self._watcher: Watcher | None = None
        self._past: Past | None = None
        self._expected: Expected | None = None

    @property
    def steps_read(self) -> int:
        """How far a long run is read."""
        return self._watcher.state.step if self._watcher else 0

    @property
    def has_past(self) -> bool:
        """Whether what was is written somewhere: of a process that is no run of ours nothing is."""
        return self._past is not None

    def look(self, shown: RunView | None) -> RunView:
        """Poll, fold, copy. A run that is over and silent gives the view that is ``shown`` again."""
        if self._watcher is None:
            self._watcher = self._source.watch(self._name)
            self._expected = self._source.expected(self._name)
            self._past = self._source.past(self._name)
        view = look_at(self._watcher, self._clock(), shown is None, self._expected)
        if shown is None or not (shown.is_over and view.is_over):
            return view
        is_same = shown.last_t == view.last_t and shown.is_approximate == view.is_approximate
        return shown if is_same else view

    def look_back(self, at: float) -> RunView:
        """Return the run as it was at wall time ``at``, in seconds since the epoch; it has been looked at before."""
        assert self._past is not None and self._watcher is not None
        return look_back(self._past.state_at(at), self._watcher.name, at, self._expected)
