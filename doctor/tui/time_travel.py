"""Looking back: which moment of a run its screen shows, moved by keys or a click on the bar, or played."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from doctor.tui.background import in_background
from doctor.tui.messages import PastRead, Trouble
from doctor.tui.run_feed import RunFeed
from doctor.tui.run_panes import RunPanes
from doctor.tui.trouble import sentence
from doctor.tui.view import RunView
from doctor.tui.widgets.time_bar import TimeBar
from runner.text import t

SPEEDS = (1, 10, 60, 600, 3600, 36000)
"""Seconds of the run a second of playing."""
PLAYED_IN_S = 60.0
"""Playing begins at the speed that shows the whole run in about so long."""
TICK_S = 0.5


class TimeTravel(RunPanes):
    """Panes that show a moment of a run; no moment is now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "shift(-0.01)", t("Time").msgid, key_display="← →", priority=True),
        Binding("right", "shift(0.01)", t("Later").msgid, show=False, priority=True),
        Binding("left_square_bracket", "shift(-0.1)", t("Earlier").msgid, show=False),
        Binding("right_square_bracket", "shift(0.1)", t("Later").msgid, show=False),
        Binding("comma", "step(-1)", t("Earlier").msgid, show=False),
        Binding("full_stop", "step(1)", t("Later").msgid, show=False),
        Binding("home", "first_moment", t("The start").msgid, show=False, priority=True),
        Binding("end", "now", t("Now").msgid, key_display="End", priority=True),
        Binding("space", "play", t("Play").msgid, key_display="Space"),
        Binding("v", "speed", t("Speed").msgid),
    ]
    live: RunView | None
    feed: RunFeed

    moment: float | None = None
    """Seconds since the epoch; None: now."""
    is_playing = False
    speed = 0
    """One of SPEEDS; 0: not chosen yet."""
    is_looking_back = False
    """A moment is being read in the background."""
    reads_long = False
    """For so long that it is said."""

    # -- where one is
    @property
    def span(self) -> tuple[float, float] | None:
        """When the run's first and newest event were written."""
        live = self.live
        if (
            live is None
            or not self.feed.has_past
            or live.first_t is None
            or live.last_t is None
            or live.last_t <= live.first_t
        ):
            return None
        return live.first_t, live.last_t

    def may_travel(self, action: str) -> bool:
        """Return whether a key of time means something now."""
        is_back = self.moment is not None
        if self.span is None or (self.live is not None and not self.live.is_ours):
            return False
        if action in ("now", "speed"):
            return is_back
        if action in ("shift", "step", "first_moment"):
            return True
        return is_back or (self.live is not None and self.live.is_over)

    def action_shift(self, share: float) -> None:
        """Move by a share of the run, at least a second."""
        if self.span is not None:
            first, last = self.span
            self._move(max(1.0, abs(share) * (last - first)) * (1 if share > 0 else -1))

    def action_step(self, seconds: float) -> None:
        self._move(seconds)

    def _move(self, seconds: float) -> None:
        if self.span is not None and (self.moment is not None or seconds < 0):
            self.is_playing = False
            self.show_moment((self.moment if self.moment is not None else self.span[1]) + seconds)

    def action_first_moment(self) -> None:
        if self.span is not None:
            self.is_playing = False
            self.show_moment(self.span[0])

    def action_now(self) -> None:
        self.is_playing = False
        self.show_moment(None)

    def show_moment(self, at: float | None) -> None:
        """Show the run as it was; from its newest event on, as it is."""
        span = self.span
        if at is None or span is None or at >= span[1]:
            self.moment, self.is_playing = None, False
            self.show_live()
        else:
            self.moment = max(span[0], at)
            self._look_back()
        self.query_one(TimeBar).show_time()
        self.refresh_bindings()

    # -- playing
    def action_play(self) -> None:
        """Play from the moment shown; from the start where that is now."""
        self.is_playing = not self.is_playing
        if self.is_playing and self.span is not None:
            first, last = self.span
            self.speed = self.speed or next(
                (s for s in SPEEDS if s * PLAYED_IN_S >= last - first), SPEEDS[-1]
            )
            self.show_moment(first if self.moment is None else self.moment)
        self.query_one(TimeBar).show_time()

    def action_speed(self) -> None:
        """The next speed; after the last the first."""
        index = SPEEDS.index(self.speed) + 1 if self.speed else 0
        self.speed = SPEEDS[index % len(SPEEDS)]
        self.query_one(TimeBar).show_time()

    def play_on(self) -> None:
        """A tick of the clock: go on, unless the moment before is still being read."""
        if self.is_looking_back and not self.is_playing and not self.reads_long:
            self.reads_long = True
            self.query_one(TimeBar).show_time()
        if self.is_playing and self.moment is not None and self.is_current and not self.is_looking_back:
            self.show_moment(self.moment + self.speed * TICK_S)

    # -- reading
    def _look_back(self) -> None:
        if not self.is_looking_back and self.moment is not None:
            self.is_looking_back = True
            self._read_moment(self.moment)

    @work(group="past")
    async def _read_moment(self, at: float) -> None:
        try:
            view = await in_background(lambda: self.feed.look_back(at), "past")
        except Exception as error:
            self.post_message(Trouble(sentence(error)))
        else:
            self.post_message(PastRead(at, view))

    def moment_read(self, message: PastRead) -> RunView | None:
        """Return the view to show of what was read; None: one is elsewhere by now."""
        self.is_looking_back = self.reads_long = False
        if self.moment is None:
            return None
        if message.at != self.moment:
            self._look_back()
        return message.view

    def show_live(self) -> None:
        """Show the run as it is."""
        raise NotImplementedError
