"""One run, live from its directory or replayed: the same code, since both are the same files folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from doctor.language import say
from doctor.model import t
from doctor.render.layout import indent
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.confirm_screen import ConfirmScreen
from doctor.tui.messages import Answered, RunRead, Trouble
from doctor.tui.source import Watcher
from doctor.tui.trouble import sentence
from doctor.tui.view import RunView, look_at
from doctor.tui.widgets.bar import Bar, Part
from doctor.tui.widgets.curves import curve_rows
from doctor.tui.widgets.log_panel import log_rows
from doctor.tui.widgets.machine_panel import machine_rows
from doctor.tui.widgets.rows import Rows
from doctor.tui.widgets.run_head import head_rows, pane_names
from doctor.tui.widgets.stacks_panel import stack_rows
from runner.strings import printable

POLL_S = 1.0


class PaneBar(Bar):
    """Names of the panes; on a narrow screen one is shown at a time."""

    def parts(self) -> Sequence[Part]:
        screen = self.screen
        assert isinstance(screen, RunScreen)
        return [
            Part(
                "",
                f"[{name}]" if pane == screen.pane else f" {name} ",
                f"f{index + 5}",
                "reverse" if pane == screen.pane else "",
            )
            for index, (pane, name) in enumerate(pane_names())
        ]


class RunScreen(BaseScreen):
    """Curves, GPU and host, stacks and events of one run."""

    HERE = "runs"
    DEFAULT_CSS = """
    RunScreen #run-head { height: 4; }
    RunScreen #panes { height: 1fr; }
    RunScreen .pane { height: 1fr; }
    RunScreen.-narrow #panes .pane { display: none; }
    RunScreen.-narrow #panes .pane.-current { display: block; }
    RunScreen.-wide PaneBar { display: none; }
    RunScreen.-wide #panes {
        layout: grid; grid-size: 2 2; grid-columns: 3fr 2fr; grid-rows: 3fr 2fr; grid-gutter: 0 1;
    }
    RunScreen.-wide .pane { border-top: solid ansi_bright_black; border-title-style: bold; }
    RunScreen.-wide .pane:focus { border-top: heavy ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_pane(1)", t("Pane").msgid, key_display="Tab"),
        Binding("shift+tab", "next_pane(-1)", t("Previous pane").msgid, show=False),
        Binding("s", "stop", t("Stop").msgid),
        Binding("r", "resume", t("Resume").msgid),
        Binding("p,space", "pause", t("Pause").msgid),
        Binding("g", "log_scale", t("Log y").msgid),
        Binding("escape", "leave", t("Back").msgid, key_display="Esc"),
        Binding("f5", "show_pane('curves')", show=False),
        Binding("f6", "show_pane('machine')", show=False),
        Binding("f7", "show_pane('stacks')", show=False),
        Binding("f8", "show_pane('log')", show=False),
    ]

    def __init__(self, name: str) -> None:
        super().__init__()
        self.run_name = name
        """What the source takes: a path, a name or ``last``; the view knows the run's own name."""
        self.view: RunView | None = None
        self.pane = "curves"
        self.is_log_scale = False
        self.is_paused = False
        self._watcher: Watcher | None = None
        self._is_polling = False
        self._trouble = ""
        self._answer: Styled | None = None
        """What came of the last act; gone when the run has changed its state since."""

    def body(self) -> ComposeResult:
        head = Rows(self._head, id="run-head")
        head.fit_height, head.can_focus = True, False
        yield head
        yield PaneBar(id="pane-bar")
        with Container(id="panes"):
            yield Rows(
                lambda width, height: self._pane("curves", width, height),
                id="curves",
                classes="pane -current",
            )
            yield Rows(
                lambda width, height: self._pane("machine", width, height), id="machine", classes="pane"
            )
            yield Rows(lambda width, height: self._pane("stacks", width, height), id="stacks", classes="pane")
            log = Rows(lambda width, height: self._pane("log", width, height), id="log", classes="pane")
            log.follow_end = True
            yield log

    def on_mount(self) -> None:
        self._name_panes()
        self.query_one("#curves").focus()
        self.set_interval(POLL_S, self._poll)
        self._poll()

    # -- reading -------------------------------------------------------------------------
    def _poll(self) -> None:
        """Look at the run's files, unless nobody watches or the last look is still on its way."""
        if self._is_polling and self.view is None:
            self.query_one("#run-head", Rows).redraw()  # how far a long run is read
        if self._is_polling or self.is_paused or not self.is_current:
            return
        self._is_polling = True
        self._read()

    @work(exclusive=True)
    async def _read(self) -> None:
        try:
            self.post_message(RunRead(await in_background(self._look, "poll")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    def _look(self) -> RunView:
        """In the background: poll, fold, copy. A run that is over and silent gives the same view again."""
        if self._watcher is None:
            self._watcher = self.doctor.source.watch(self.run_name)
        shown = self.view
        view = look_at(self._watcher, self.doctor.clock(), is_first=shown is None)
        is_same = shown is not None and shown.is_over and view.is_over and shown.last_t == view.last_t
        is_same = is_same and shown is not None and shown.is_approximate == view.is_approximate
        return shown if is_same and shown is not None else view

    @on(RunRead)
    def _show(self, message: RunRead) -> None:
        self._is_polling = False
        if message.view is self.view and not self._trouble:
            return
        was_over = self.view is not None and self.view.is_over
        self.view, self._trouble = message.view, ""
        if was_over != message.view.is_over:
            self._answer = None
            self.refresh_bindings()
        self._redraw_shown()

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_polling, self._trouble = False, message.words
        self._redraw_shown()

    # -- drawing -------------------------------------------------------------------------
    def redraw(self) -> None:
        self._name_panes()
        super().redraw()

    def _name_panes(self) -> None:
        for pane, name in pane_names():
            self.query_one(f"#{pane}").border_title = name

    def _redraw_shown(self) -> None:
        """Redraw what can be seen; a hidden pane draws itself when it is shown (its size changes)."""
        self.query_one("#run-head", Rows).redraw()
        for rows in self.query(".pane").results(Rows):
            if rows.display:
                rows.redraw()

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        rows = [] if self.view is None else head_rows(self.view, width)
        if self.view is None and not self._trouble:
            read = self._watcher.state.step if self._watcher else 0
            reading = say(t("reading the run: step {step}", step=read))
            rows = [Styled(printable(self.run_name), "bold"), Styled(f"… {reading}", "dim")]
        if self._trouble:
            rows += [Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  ")]
        if self.view is not None and self.view.is_approximate:
            rows.append(Styled("… " + say("a long run: ends first; the whole is being read"), "dim"))
        if self.is_paused:
            rows.append(Styled("‖ " + say("view paused; the run goes on"), "bold reverse"))
        if self._answer is not None:
            rows += [Styled(line, self._answer.style) for line in indent(self._answer.plain, width, "", "  ")]
        return rows

    def _pane(self, pane: str, width: int, height: int) -> Sequence[Styled]:
        if self.view is None:
            return ()
        if pane == "curves":
            return curve_rows(self.view, width, height, self.is_log_scale)
        if pane == "machine":
            return machine_rows(self.view, width)
        return stack_rows(self.view, width) if pane == "stacks" else log_rows(self.view, width)

    # -- acting --------------------------------------------------------------------------
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return not self.doctor.is_readonly and (self.view is None or not self.view.is_over)
        if action == "resume":
            return not self.doctor.is_readonly and self.view is not None and self._can_resume(self.view)
        return super().check_action(action, parameters)

    def _can_resume(self, view: RunView) -> bool:
        return view.is_over and view.status != "completed"

    def action_next_pane(self, by: int) -> None:
        names = [pane for pane, _ in pane_names()]
        self.action_show_pane(names[(names.index(self.pane) + by) % len(names)])

    def action_show_pane(self, pane: str) -> None:
        self.pane = pane
        for widget in self.query(".pane").results(Rows):
            widget.set_class(widget.id == pane, "-current")
        shown = self.query_one(f"#{pane}", Rows)
        shown.focus()
        self.query_one("#pane-bar", Rows).redraw()
        self.call_after_refresh(shown.redraw)

    def action_pause(self) -> None:
        self.is_paused = not self.is_paused
        self._redraw_shown()

    def action_log_scale(self) -> None:
        self.is_log_scale = not self.is_log_scale
        self.query_one("#curves", Rows).redraw()

    def action_leave(self) -> None:
        self.doctor.close_run()

    def action_stop(self) -> None:
        name = printable(self.view.name if self.view else self.run_name)
        question = say(
            t(
                "Stop {name}? It finishes its step, saves and leaves; it can be resumed.",
                name=name,
            )
        )
        self.app.push_screen(ConfirmScreen(question, say("Stop the run")), self._stop_if)

    def _stop_if(self, is_confirmed: bool | None) -> None:
        if is_confirmed:
            self._act(lambda: self.doctor.source.stop(self.run_name), _stop_answer)

    def action_resume(self) -> None:
        name = printable(self.view.name if self.view else self.run_name)
        question = say(t("Go on with {name} from its last checkpoint?", name=name))
        self.app.push_screen(ConfirmScreen(question, say("Resume the run")), self._resume_if)

    def _resume_if(self, is_confirmed: bool | None) -> None:
        if is_confirmed:
            self._act(lambda: self.doctor.source.resume(self.run_name), _resume_answer)

    @work
    async def _act(self, act: Callable[[], None], answer: Callable[[str], Styled]) -> None:
        """Do what may wait, then show ``answer`` of what stood in its way ("" where nothing did)."""
        try:
            await in_background(act, "act")
        except Exception as error:
            self.post_message(Answered(answer(sentence(error))))
        else:
            self.post_message(Answered(answer("")))

    @on(Answered)
    def _note_answer(self, message: Answered) -> None:
        self._answer = message.words
        self._redraw_shown()


def _stop_answer(trouble: str) -> Styled:
    if trouble:
        return Styled("✗ " + say(t("it could not be stopped: {why}", why=trouble)), "bold red")
    return Styled("■ " + say("asked to stop: it saves and leaves at the end of its step"), "bold")


def _resume_answer(trouble: str) -> Styled:
    if trouble:
        return Styled("✗ " + say(t("it could not be resumed: {why}", why=trouble)), "bold red")
    return Styled("▶ " + say("resumed: it loads its checkpoint and goes on"), "bold")
