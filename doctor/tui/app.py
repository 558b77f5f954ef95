"""The full-screen view: the keys that work everywhere, and how it is started."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from doctor.language import current_language, say, use_language
from doctor.settings import save_setting
from doctor.tui.base_screen import BaseScreen
from doctor.tui.line import Line
from doctor.tui.navigation import Navigation
from doctor.tui.source import Source
from doctor.tui.terminal import AsciiDriver, choose_driver, no_color_kept, want_terminal
from doctor.tui.widgets.bar import shown_bindings
from runner.text import t

if TYPE_CHECKING:
    from doctor.process_watch import ProcessWatcher

THEMES = ("ansi-dark", "textual-ansi")
"""First one that this textual has. The terminal's 16 colours on its own background: fewest bytes over SSH,
right on a light terminal too, and with NO_COLOR truly without colour (other themes become greys)."""


LAST_ANSWER_S = 2.0
NOTICE_S = 12.0


class DoctorApp(Navigation):
    """Asks ``source`` and shows the answers; ``clock`` is wall time in seconds since the epoch."""

    TITLE = "doctor"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "go('check')", t("Machine").msgid, show=False),
        Binding("2", "go('profiles')", t("Profiles").msgid, show=False),
        Binding("3", "go('runs')", t("Runs").msgid, show=False),
        Binding("4", "go('snapshots')", t("Snapshots").msgid, show=False),
        Binding("l", "language", t("中文").msgid),
        Binding("question_mark,f1,h", "help", t("Help").msgid, key_display="?"),
        Binding("q", "quit", t("Quit").msgid),
        Binding("ctrl+c", "quit", t("Quit").msgid, show=False, priority=True),
        Binding("ctrl+p", "command_palette", t("Menu").msgid, key_display="^P", priority=True),
    ]

    def __init__(
        self,
        source: Source,
        *,
        clock: Callable[[], float] = time.time,
        run: str | None = None,
        is_readonly: bool = False,
        driver_class: type[Driver] | None = None,
        notice: str = "",
    ) -> None:
        with no_color_kept():
            super().__init__(driver_class=driver_class, ansi_color=True)
        self.source = source
        self.clock = clock
        self.is_readonly = is_readonly
        self._first_run = run
        self._notice = notice
        self._line: Line | None = None
        self.animation_level = "none"
        self.theme = next((name for name in THEMES if name in self.available_themes), self.theme)

    async def on_mount(self) -> None:
        self.add_screens()
        await self.switch_mode("runs" if self._first_run else "check")
        if self._first_run:
            await self.show_run(self._first_run)
        if self._notice:
            self.call_after_refresh(self._tell, self._notice, NOTICE_S)

    # -- a slow line
    @property
    def line(self) -> Line:
        """How far behind the terminal is."""
        if self._line is None:
            driver = self._driver
            asks = driver is not None and not self.is_headless and not self.is_web
            self._line = Line(driver.write if driver is not None and asks else None, time.monotonic)
        return self._line

    async def action_quit(self) -> None:
        """Leave once the terminal's last answer has come: later it would stand at the shell's prompt."""
        until = time.monotonic() + LAST_ANSWER_S
        while not self.line.is_free() and time.monotonic() < until:
            await asyncio.sleep(0.02)
        await super().action_quit()

    def on_cursor_position(self, event: events.CursorPosition) -> None:
        self.line.answered()

    @property
    def is_ascii(self) -> bool:
        """Whether the terminal draws nothing but ASCII."""
        return issubclass(self.driver_class, AsciiDriver)

    def get_key_display(self, binding: Binding) -> str:
        shown = super().get_key_display(binding)
        return shown.replace("⏎", "Enter") if self.is_ascii else shown

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "language":
            return not self.is_ascii
        return super().check_action(action, parameters)

    def action_language(self) -> None:
        """Change the language, here and for every later command; where the home cannot be written, here only."""
        chosen = "en" if current_language() == "zh" else "zh"
        use_language(chosen)
        try:
            save_setting("lang", chosen)
        except OSError as error:
            self._tell(say(t("the language is not kept: {error}", error=error.strerror or str(error))))
        for screen in self.screen_stack:
            if isinstance(screen, BaseScreen):
                screen.redraw()

    def _tell(self, words: str, seconds: float = 5.0) -> None:
        if isinstance(self.screen, BaseScreen):
            self.screen.tell(words, seconds)

    def on_screen_resume(self) -> None:
        """A screen of another mode may have been drawn in the language of before."""
        if isinstance(self.screen, BaseScreen):
            self.screen.call_after_refresh(self.screen.redraw)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Return the command palette's entries: what the keys do, by name."""
        yield SystemCommand(
            say("Machine"), say("what is wrong here, why, and what to do"), lambda: self._go("check")
        )
        yield SystemCommand(
            say("Profiles"), say("what can be trained, with the plan"), lambda: self._go("profiles")
        )
        yield SystemCommand(say("Runs"), say("watch a run, live or finished"), lambda: self._go("runs"))
        yield SystemCommand(
            say("Snapshots"), say("environments as files: look, export"), lambda: self._go("snapshots")
        )
        for binding in shown_bindings(screen):
            if binding.action != "command_palette":
                shown = self.get_key_display(binding)
                yield SystemCommand(say(binding.description), shown, self._press(binding.key))

    def _go(self, mode: str) -> None:
        self.call_later(self.action_go, mode)

    def _press(self, key: str) -> Callable[[], None]:
        return lambda: self.simulate_key(key)


def run_app(
    run: str | None = None,
    facts: Path | None = None,
    readonly: bool = False,
    foreign: ProcessWatcher | None = None,
) -> int:
    """Show the full-screen view until the user leaves; return the exit status. Raises CommandError.

    ``run`` opens on that run, ``foreign`` on a process that is no run of ours; ``facts`` is a recorded machine to
    judge instead of this one; ``readonly`` removes the keys that start or stop anything, and so does ``facts``: what
    is judged is not this machine.
    """
    from doctor.tui.live import LiveSource

    want_terminal()
    for frozen in ("COLUMNS", "LINES"):  # exported (docker exec -e COLUMNS=...), they would hide every resize
        os.environ.pop(frozen, None)
    driver_class, notice = choose_driver()
    source = LiveSource(facts, foreign)
    app = DoctorApp(
        source,
        run=foreign.name if foreign is not None else run,
        is_readonly=readonly or facts is not None,
        driver_class=driver_class,
        notice=notice,
    )
    return app.run() or 0


def serve_app(run: str | None, pid: int | None, log: Path | None, readonly: bool) -> int:
    """Show the view to whoever is at the other end of our pipes (see :mod:`doctor.web`)."""
    from doctor import service
    from doctor.tui.live import LiveSource

    foreign = service.watch_pid(pid, log) if pid is not None else None
    shown = foreign.name if foreign is not None else run
    return DoctorApp(LiveSource(None, foreign), run=shown, is_readonly=readonly).run() or 0
