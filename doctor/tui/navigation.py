"""Which screens there are, and how one leads to another. A screen's module is imported when it is first shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.screen import Screen

from doctor.tui.source import Examination

if TYPE_CHECKING:
    from doctor.tui.fix_screen import FixScreen


class Navigation(App[int]):
    """Four screens of which one is on top, and those that lie over them."""

    def add_screens(self) -> None:
        self.add_mode("check", _check_screen)
        self.add_mode("profiles", _profiles_screen)
        self.add_mode("runs", _runs_screen)
        self.add_mode("snapshots", _snapshots_screen)

    async def action_go(self, mode: str) -> None:
        """Show a screen; asked for while it stands under another (a run, help), it comes to the top."""
        if self.current_mode != mode:
            await self.switch_mode(mode)
        elif len(self.screen_stack) > 1 and not self.screen.is_modal:
            await self.pop_screen()

    def open_run(self, name: str) -> None:
        """Watch a run; its screen lies over the list of runs."""
        self.call_later(self.show_run, name)

    async def show_run(self, name: str) -> None:
        from doctor.tui.run_screen import RunScreen

        if self.current_mode != "runs":
            await self.switch_mode("runs")
        if isinstance(self.screen, RunScreen):
            await self.pop_screen()
        await self.push_screen(RunScreen(name))

    def close_run(self) -> None:
        """Leave a run's screen for the list of runs. The run is not touched."""
        if len(self.screen_stack) > 1:
            self.pop_screen()

    def open_fix(self, examination: Examination, finding_id: str, subject: str) -> None:
        """Show a finding's cure over the machine's screen."""
        from doctor.tui.fix_screen import FixScreen

        self.push_screen(FixScreen(examination, finding_id, subject))

    def close_fix(self, screen: FixScreen) -> None:
        """Leave a cure; what it changed stands on the machine's screen."""
        from doctor.tui.check_screen import CheckScreen
        from doctor.tui.messages import Examined

        self.pop_screen()
        if screen.is_changed and isinstance(self.screen, CheckScreen):
            self.screen.post_message(Examined(screen.examination))

    def open_comparison(self, a: str, b: str) -> None:
        """Show two runs side by side over the list of runs."""
        from doctor.tui.compare_screen import CompareScreen

        self.push_screen(CompareScreen(a, b))

    def open_difference(self, a: str, b: str) -> None:
        """Show what differs between two snapshots over the list of them."""
        from doctor.tui.difference_screen import DifferenceScreen

        self.push_screen(DifferenceScreen(a, b))

    def action_help(self) -> None:
        from doctor.tui.help_screen import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())


def _check_screen() -> Screen[Any]:
    from doctor.tui.check_screen import CheckScreen

    return CheckScreen()


def _profiles_screen() -> Screen[Any]:
    from doctor.tui.profiles_screen import ProfilesScreen

    return ProfilesScreen()


def _snapshots_screen() -> Screen[Any]:
    from doctor.tui.snapshots_screen import SnapshotsScreen

    return SnapshotsScreen()


def _runs_screen() -> Screen[Any]:
    from doctor.tui.runs_screen import RunsScreen

    return RunsScreen()
