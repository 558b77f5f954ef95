"""The profiles that can be run, and the plan that one becomes here: every choice with its reason, and whether it fits the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.model import t
from doctor.render.layout import indent
from doctor.render.text import printable_text
from doctor.tui.background import in_background
from doctor.tui.confirm_screen import ConfirmScreen
from doctor.tui.list_screen import ListScreen, named_rows
from doctor.tui.messages import Planned, RunStarted
from doctor.tui.source import PlanRow, ProfileRow
from doctor.tui.trouble import sentence
from doctor.tui.widgets.item_list import Item
from doctor.tui.widgets.plan_rows import plan_rows
from runner.strings import printable


class ProfilesScreen(ListScreen[ProfileRow]):
    """Pick a profile, read its plan, change what matters, start it."""

    HERE = "profiles"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "start", t("Start run").msgid),
        Binding("c", "change", t("Change values").msgid),
        Binding("r", "list", t("Plan again").msgid),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, PlanRow] = {}
        self.overrides: dict[str, dict[str, str]] = {}
        """Values changed here, by profile and key; they hold until the screen is left for good."""
        self._planning: set[str] = set()
        self._is_starting = False

    # -- the list
    def read_rows(self) -> Sequence[ProfileRow]:
        return self.doctor.source.profiles()

    def action_list(self) -> None:
        self.plans.clear()
        super().action_list()
        if self.is_mounted:
            self._plan_open()

    def item_of(self, row: ProfileRow) -> Item:
        def rows(width: int, unfolded: bool) -> Sequence[Styled]:
            names = [one.name for one in self.rows or ()]
            return named_rows(printable(row.name), printable_text(row.title), width, names)

        return Item(row.name, rows)

    def about(self, width: int) -> Sequence[Styled]:
        if self._is_starting:
            return [Styled("… " + say("checking the machine and starting the run"), "bold")]
        if self.rows is None:
            return [Styled("… " + say("looking for profiles"), "dim")]
        words = say(t("profiles: {count}; Enter shows the plan with its reasons", count=len(self.rows)))
        return [Styled(line, "dim") for line in indent(words, width, "", "")]

    # -- the plan
    def look_at(self, key: str) -> None:
        if key not in self.plans and key not in self._planning:
            self._planning.add(key)
            self._plan(key)

    def _plan_open(self) -> None:
        beside = {self.listed.current_key} if self.has_page_beside else set()
        for key in (self.listed.unfolded | beside) - {""}:
            self.look_at(key)

    def _changed(self, profile: str) -> tuple[str, ...]:
        return tuple(f"{key}={value}" for key, value in self.overrides.get(profile, {}).items())

    @work(group="plan")
    async def _plan(self, profile: str) -> None:
        source, changed = self.doctor.source, self._changed(profile)
        try:
            plan = await in_background(lambda: source.plan(profile, changed), "plan")
        except Exception as error:
            plan = PlanRow(profile, problems=(sentence(error),), changed=changed)
        self.post_message(Planned(plan))

    @on(Planned)
    def _show_plan(self, message: Planned) -> None:
        profile = message.plan.profile
        self._planning.discard(profile)
        self.plans[profile] = message.plan
        self.show_page()
        self.refresh_bindings()
        if message.plan.changed != self._changed(profile):  # changed again meanwhile
            del self.plans[profile]
            self.look_at(profile)

    def page(self, key: str, width: int, height: int = 0) -> Sequence[Styled]:
        return list(plan_rows(self.plans.get(key), width))

    # -- acting
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "start":
            return not self.doctor.is_readonly and bool(self.rows) and not self._is_starting
        if action == "change":
            return bool(self.rows)
        return super().check_action(action, parameters)

    def action_change(self) -> None:
        """Change the few values that matter; the plan is made again with them."""
        from doctor.tui.change_screen import ChangeScreen

        profile = self.listed.current_key
        changed = self.overrides.get(profile, {})
        self.app.push_screen(ChangeScreen(profile, changed), lambda values: self._change(profile, values))

    def _change(self, profile: str, values: dict[str, str] | None) -> None:
        if values is None or values == self.overrides.get(profile, {}):
            return
        self.overrides[profile] = values
        self.plans.pop(profile, None)
        self.listed.unfolded.add(profile)
        self.look_at(profile)
        self.show_page()

    def action_start(self) -> None:
        profile = self.listed.current_key
        changed = self._changed(profile)
        question = say(t("Start a run of {profile} on this machine?", profile=printable(profile)))
        if changed:
            question += "\n" + say(t("With {values}.", values=printable(", ".join(changed))))
        self.app.push_screen(
            ConfirmScreen(question, say("Start the run")),
            lambda is_yes: self._begin(profile, changed) if is_yes else None,
        )

    def _begin(self, profile: str, changed: tuple[str, ...]) -> None:
        self._is_starting, self.trouble = True, ""
        self.redraw_head()
        self._start(profile, changed)

    @work(group="start")
    async def _start(self, profile: str, changed: tuple[str, ...]) -> None:
        source = self.doctor.source
        try:
            name = await in_background(lambda: source.start(profile, changed), "start")
        except Exception as error:
            self.post_message(RunStarted("", sentence(error)))
        else:
            self.post_message(RunStarted(name))

    @on(RunStarted)
    def _watch(self, message: RunStarted) -> None:
        self._is_starting, self.trouble = False, message.trouble
        self.redraw_head()
        self.refresh_bindings()
        if message.name:
            self.doctor.open_run(message.name)
