"""The panes of a run's screen: all at once where it is wide, tabs where it is narrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from doctor.tui.base_screen import BaseScreen
from doctor.tui.pane_heights import Heights, heights
from doctor.tui.view import RunView
from doctor.tui.widgets.bar import Bar, Part
from doctor.tui.widgets.curves import curve_rows
from doctor.tui.widgets.log_panel import log_rows, output_rows
from doctor.tui.widgets.machine_panel import machine_rows
from doctor.tui.widgets.rows import Picture, Rows
from doctor.tui.widgets.run_head import pane_names
from doctor.tui.widgets.stacks_panel import icicle_rows, stack_rows
from runner.text import t


class PaneBar(Bar):
    """Names of the panes; on a narrow screen one is shown at a time."""

    def parts(self) -> Sequence[Part]:
        screen = self.screen
        assert isinstance(screen, RunPanes)
        parts = []
        for index, (pane, name) in enumerate(pane_names()):
            is_shown = pane == screen.pane
            label = f"[{name}]" if is_shown else f" {name} "
            parts.append(Part("", label, f"f{index + 5}", "reverse" if is_shown else ""))
        return parts


class RunPanes(BaseScreen):
    """Shows ``view`` in four panes."""

    DEFAULT_CSS = """
    RunPanes #panes { height: 1fr; }
    RunPanes .pane { height: 1fr; }
    RunPanes #panes { layout: horizontal; }
    RunPanes .side { height: 1fr; width: 2fr; }
    RunPanes #left { width: 3fr; }
    RunPanes.-wide #right { margin-left: 1; min-width: 68; }
    RunPanes.-narrow .side, RunPanes.-narrow .pane { display: none; }
    RunPanes.-narrow .side.-current, RunPanes.-narrow .pane.-current { display: block; }
    RunPanes.-wide PaneBar { display: none; }
    RunPanes.-wide .pane { border-top: solid ansi_bright_black; border-title-style: bold; }
    RunPanes.-wide .pane:focus { border-top: heavy ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "next_pane(1)", t("Pane").msgid, key_display="Tab"),
        Binding("shift+tab", "next_pane(-1)", t("Previous pane").msgid, show=False),
        Binding("g", "log_scale", t("Log scale").msgid),
        Binding("i", "icicle", t("Icicle").msgid),
        Binding("o", "output", t("Trainer log").msgid),
        Binding("f5", "show_pane('curves')", t("Curves").msgid, show=False),
        Binding("f6", "show_pane('machine')", t("GPU and host").msgid, show=False),
        Binding("f7", "show_pane('stacks')", t("Stacks").msgid, show=False),
        Binding("f8", "show_pane('log')", t("Events").msgid, show=False),
    ]
    view: RunView | None = None
    """What is shown."""
    pane = "curves"
    _heights: Heights | None = None
    _stacks_rows = 0
    is_log_scale = False
    is_icicle = False
    is_output = False

    def panes(self) -> ComposeResult:
        yield PaneBar(id="pane-bar")
        machine = Rows(
            self._drawn(lambda view, width, height: machine_rows(view, width)), id="machine", classes="pane"
        )
        log = Rows(self._drawn(self._log), id="log", classes="pane")
        log.follow_end = True
        with Container(id="panes"):
            with Container(id="left", classes="side -current"):
                yield Picture(self._drawn(self._curves), id="curves", classes="pane -current")
                yield Rows(self._drawn(self._stacks), id="stacks", classes="pane")
            with Container(id="right", classes="side"):
                yield machine
                yield log

    def begin_panes(self) -> None:
        self.name_panes()
        self.query_one("#curves").focus()

    # -- drawing
    def _drawn(
        self, draw: Callable[[RunView, int, int], Sequence[Styled]]
    ) -> Callable[[int, int], Sequence[Styled]]:
        return lambda width, height: () if self.view is None else draw(self.view, width, height)

    def _curves(self, view: RunView, width: int, height: int) -> Sequence[Styled]:
        return curve_rows(view, width, height, self.is_log_scale)

    def _stacks(self, view: RunView, width: int, height: int) -> Sequence[Styled]:
        return icicle_rows(view, width) if self.is_icicle else stack_rows(view, width)

    def _log(self, view: RunView, width: int, height: int) -> Sequence[Styled]:
        return output_rows(view, width) if self.is_output else log_rows(view, width)

    def redraw(self) -> None:
        self.name_panes()
        super().redraw()

    def name_panes(self) -> None:
        for pane, name in pane_names():
            self.query_one(f"#{pane}").border_title = name

    def redraw_panes(self) -> None:
        for rows in self.query(".pane").results(Rows):
            if rows.display:
                rows.redraw()
        self.share_height()

    def on_resize(self) -> None:
        self._stacks_rows, self._heights = 0, None
        self.call_after_refresh(self.share_height)

    def on_rows_counted(self, event: Rows.Counted) -> None:
        """Panes are drawn when they have a size, which may be after the heights were last shared."""
        event.stop()
        self.share_height()

    def share_height(self) -> None:
        """Give each pane of a wide screen the rows that it needs. What stacks once needed they keep: they come and go."""
        room = self.query_one("#panes").size.height
        if not self.has_class("-wide"):
            self._set_heights(None)
        elif self.view is not None and room > 0:
            rows = {pane: len(self.query_one(f"#{pane}", Rows).rows) for pane in ("machine", "stacks", "log")}
            self._stacks_rows = max(self._stacks_rows, rows["stacks"])
            self._set_heights(heights(room, rows["machine"], self._stacks_rows, rows["log"]))

    def _set_heights(self, shared: Heights | None) -> None:
        if shared != self._heights or shared is None:
            self._heights = shared
            for pane, _ in pane_names():
                self.query_one(f"#{pane}").styles.height = "1fr" if shared is None else getattr(shared, pane)

    # -- acting
    def action_next_pane(self, by: int) -> None:
        names = [pane for pane, _ in pane_names()]
        self.action_show_pane(names[(names.index(self.pane) + by) % len(names)])

    def action_show_pane(self, pane: str) -> None:
        self.pane = pane
        for widget in self.query(".pane").results(Rows):
            widget.set_class(widget.id == pane, "-current")
        for side in self.query(".side"):
            side.set_class(bool(side.query(f"#{pane}")), "-current")
        shown = self.query_one(f"#{pane}", Rows)
        shown.focus()
        self.query_one("#pane-bar", Rows).redraw()
        self.call_after_refresh(shown.redraw)

    def action_log_scale(self) -> None:
        self.is_log_scale = not self.is_log_scale
        self.query_one("#curves", Rows).redraw()

    def action_icicle(self) -> None:
        """Stacks as a table of functions, or as a tree of who called whom."""
        self.is_icicle = not self.is_icicle
        self._show_changed("stacks")

    def action_output(self) -> None:
        """Events, or the end of the trainer's log."""
        self.is_output = not self.is_output
        self._show_changed("log")

    def _show_changed(self, pane: str) -> None:
        """Draw a pane that shows something else now; where it is a tab, it comes to the top."""
        if self.has_class("-narrow"):
            self.action_show_pane(pane)
        shown = self.query_one(f"#{pane}", Rows)
        shown.redraw()
        self.share_height()
        if shown.follow_end:
            shown.scroll_end(animate=False)
