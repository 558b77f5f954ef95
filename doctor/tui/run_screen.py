"""One run, live from its directory, looked back on or replayed: the same code, since all are the same files folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.model import t
from doctor.render.layout import human_seconds, indent
from doctor.tui.background import in_background
from doctor.tui.messages import Answered, PastRead, RunRead, Trouble
from doctor.tui.run_acts import RunActs
from doctor.tui.run_feed import RunFeed
from doctor.tui.time_travel import TICK_S
from doctor.tui.trouble import sentence
from doctor.tui.view import RunView
from doctor.tui.widgets.bar import LOW_ROWS
from doctor.tui.widgets.rows import Head, Rows
from doctor.tui.widgets.run_head import head_rows
from doctor.tui.widgets.time_bar import Time, TimeBar
from runner.strings import printable

POLL_S = 1.0
HEAD_ROWS_WHERE_LOW = 3


class RunScreen(RunActs):
    """Curves, GPU and host, stacks and events of one run, as it is or at a moment of its past."""

    HERE = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", t("Pause").msgid),
        Binding("escape", "leave", t("Back").msgid, key_display="Esc"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__()
        self.run_name = name
        """What the source takes: a path, a name or ``last``; the view knows the run's own name."""
        self.live: RunView | None = None
        self.is_paused = False
        self._is_polling = False
        self._trouble = ""
        self._answer: Styled | None = None
        """What came of the last act; gone when the run has changed its state since."""

    def body(self) -> ComposeResult:
        yield Head(self._head, id="run-head")
        yield TimeBar(self._time, self._go_to)
        yield from self.panes()

    def on_mount(self) -> None:
        self.feed = RunFeed(self.doctor.source, self.run_name, self.doctor.clock)
        self.begin_panes()
        self.set_interval(POLL_S, self._poll)
        self.set_interval(TICK_S, self.play_on)
        self._poll()

    # -- reading
    def _poll(self) -> None:
        """Look at the run's files, unless nobody watches or the last look is still on its way."""
        if self._is_polling and self.live is None:
            self.query_one("#run-head", Rows).redraw()  # how far a long run is read
        if self._is_polling or self.is_paused or not self.is_current or not self.doctor.line.is_free():
            return
        self._is_polling = True
        self._read()

    @work(exclusive=True, group="live")
    async def _read(self) -> None:
        shown = self.live
        try:
            self.post_message(RunRead(await in_background(lambda: self.feed.look(shown), "poll")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(RunRead)
    def _show(self, message: RunRead) -> None:
        self._is_polling = False
        if message.view is self.live and not self._trouble:
            return
        was_over = self.live.is_over if self.live is not None else None
        self.live, self._trouble = message.view, ""
        if was_over != message.view.is_over:
            self._answer = None
            self.refresh_bindings()
        if self.moment is None:
            self.show_live()
        self.query_one(TimeBar).show_time()
        self.call_after_refresh(self.doctor.line.ask)

    @on(PastRead)
    def _show_past(self, message: PastRead) -> None:
        view = self.moment_read(message)
        if view is not None:
            self.view = view
            self.redraw_shown()
            self.query_one(TimeBar).show_time()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_polling, self.is_looking_back, self.is_playing = False, False, False
        self.reads_long = False
        self._trouble = message.words
        self.redraw_shown()

    def show_live(self) -> None:
        self.view = self.live
        self.redraw_shown()

    # -- drawing
    def redraw_shown(self) -> None:
        """Redraw what can be seen; a hidden pane draws itself when it is shown (its size changes)."""
        self.query_one("#run-head", Rows).redraw()
        self.redraw_panes()

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        if self.view is None and not self._trouble:
            reading = say(t("reading the run: step {step}", step=self.feed.steps_read))
            return [Styled(printable(self.run_name), "bold"), Styled(f"… {reading}", "dim")]
        rows = [] if self.view is None else head_rows(self.view, width)
        if self.size.height < LOW_ROWS:
            rows = rows[:HEAD_ROWS_WHERE_LOW]
        return [*rows, *self._states(width)]

    def _states(self, width: int) -> Iterator[Styled]:
        """Yield what is to be known of the view itself."""
        if self._trouble:
            yield from (Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  "))
        if self.view is not None and self.view.is_past and self.span is not None:
            after = human_seconds(self.view.now - self.span[0])
            words = say(t("as it was {time} after its start; End shows it as it is", time=after))
            yield from (Styled(line, "bold reverse") for line in indent(words, width, "◀ ", "  "))
        elif self.view is not None and self.view.is_approximate:
            yield Styled("… " + say("a long run: ends first; the whole is being read"), "dim")
        if self.is_paused:
            yield Styled("‖ " + say("view paused; the run goes on"), "bold reverse")
        if self._answer is not None:
            yield from (
                Styled(line, self._answer.style) for line in indent(self._answer.plain, width, "", "  ")
            )

    def _time(self) -> Time | None:
        span = self.span
        if span is None or self.live is None or not (self.live.is_over or self.moment is not None):
            return None
        speed = self.speed if self.is_playing else 0
        return Time(*span, self.moment, speed, self.reads_long)

    def _go_to(self, at: float | None) -> None:
        self.is_playing = False
        self.show_moment(at)

    def copied(self) -> str:
        return "\n".join((self.query_one("#run-head", Rows).copied, super().copied()))

    # -- acting
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("stop", "resume", "approximate"):
            return self.may_act(action)
        if action in ("shift", "step", "first_moment", "now", "play", "speed"):
            return self.may_travel(action)
        if action == "pause":
            return self.moment is None and (self.live is None or not self.live.is_over)
        return super().check_action(action, parameters)

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self.redraw_shown()

    def action_leave(self) -> None:
        self.doctor.close_run()

    @on(Answered)
    def _note_answer(self, message: Answered) -> None:
        self._answer = message.words
        self.redraw_shown()
