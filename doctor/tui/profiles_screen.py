"""The profiles that can be run, and the plan that one becomes here: every choice with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.model import t
from doctor.render.layout import display_width, indent, pad
from doctor.render.text import printable_text
from doctor.tui.background import in_background
from doctor.tui.base_screen import BaseScreen
from doctor.tui.confirm_screen import ConfirmScreen
from doctor.tui.messages import Planned, ProfilesListed, RunStarted, Trouble
from doctor.tui.source import DecisionRow, PlanRow, ProfileRow
from doctor.tui.trouble import sentence
from doctor.tui.widgets.item_list import Item, ItemList
from doctor.tui.widgets.rows import Rows
from doctor.tui.words import words_of
from runner.strings import printable


class ProfilesScreen(BaseScreen):
    """Pick a profile, read its plan, start it."""

    HERE = "profiles"
    DEFAULT_CSS = """
    ProfilesScreen #head { height: 1; }
    ProfilesScreen #profiles { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "start", t("Start run").msgid)]

    def __init__(self) -> None:
        super().__init__()
        self.profiles: Sequence[ProfileRow] | None = None
        self.plans: dict[str, PlanRow] = {}
        self._trouble = ""
        self._is_starting = False

    def body(self) -> ComposeResult:
        head = Rows(self._head, id="head")
        head.fit_height, head.can_focus = True, False
        yield head
        yield ItemList(id="profiles")

    @property
    def listed(self) -> ItemList:
        return self.query_one("#profiles", ItemList)

    def on_mount(self) -> None:
        self.listed.focus()
        self._list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "start":
            return not self.doctor.is_readonly
        return super().check_action(action, parameters)

    @work(group="list")
    async def _list(self) -> None:
        try:
            self.post_message(ProfilesListed(await in_background(self.doctor.source.profiles, "profiles")))
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(ProfilesListed)
    def _show(self, message: ProfilesListed) -> None:
        self.profiles = message.rows
        self.listed.show_items([self._item(row) for row in message.rows])
        self.query_one("#head", Rows).redraw()

    @on(ItemList.Chosen)
    def _unfold(self, message: ItemList.Chosen) -> None:
        if message.key not in self.plans:
            self._plan(message.key)
        self.listed.toggle(message.key)

    @work(group="plan")
    async def _plan(self, profile: str) -> None:
        try:
            plan = await in_background(lambda: self.doctor.source.plan(profile), "plan")
        except Exception as error:
            plan = PlanRow(profile, problems=(sentence(error),))
        self.post_message(Planned(plan))

    @on(Planned)
    def _show_plan(self, message: Planned) -> None:
        self.plans[message.plan.profile] = message.plan
        self.listed.redraw()

    def action_start(self) -> None:
        profile = self.listed.current_key
        if profile and not self._is_starting:
            question = say(t("Start a run of {profile} on this machine?", profile=printable(profile)))
            self.app.push_screen(
                ConfirmScreen(question, say("Start the run")),
                lambda is_yes: self._begin(profile) if is_yes else None,
            )

    def _begin(self, profile: str) -> None:
        self._is_starting, self._trouble = True, ""
        self.query_one("#head", Rows).redraw()
        self._start(profile)

    @work(group="start")
    async def _start(self, profile: str) -> None:
        try:
            self.post_message(
                RunStarted(await in_background(lambda: self.doctor.source.start(profile), "start"))
            )
        except Exception as error:
            self.post_message(Trouble(sentence(error)))

    @on(RunStarted)
    def _watch(self, message: RunStarted) -> None:
        self._is_starting = False
        self.query_one("#head", Rows).redraw()
        self.doctor.open_run(message.name)

    @on(Trouble)
    def _show_trouble(self, message: Trouble) -> None:
        self._is_starting, self._trouble = False, message.words
        self.query_one("#head", Rows).redraw()

    def _head(self, width: int, height: int) -> Sequence[Styled]:
        if self._trouble:
            return [Styled(line, "bold red") for line in indent(self._trouble, width, "✗ ", "  ")]
        if self._is_starting:
            return [Styled("… " + say("checking the machine and starting the run"), "bold")]
        if self.profiles is None:
            return [Styled("… " + say("looking for profiles"), "dim")]
        return [
            Styled(
                say(t("profiles: {count}; Enter shows the plan with its reasons", count=len(self.profiles))),
                "dim",
            )
        ]

    def _item(self, row: ProfileRow) -> Item:
        def rows(width: int, unfolded: bool) -> Sequence[Styled]:
            first, *rest = indent(printable_text(row.title), width - 22, "", "") or [""]
            out = [Styled.assemble((pad(printable(row.name), 20) + "  ", "bold"), first)]
            out += [Styled(" " * 22 + line) for line in rest]
            return out + (list(_plan_rows(self.plans.get(row.name), width)) if unfolded else [])

        return Item(row.name, rows)


def _plan_rows(plan: PlanRow | None, width: int) -> Iterator[Styled]:
    if plan is None:
        yield Styled("    … " + say("making the plan"), "dim")
        return
    for problem in plan.problems:
        for line in indent(problem, width, "  ✗ ", "    "):
            yield Styled(line, "bold red")
    names = max((display_width(decision.name) for decision in plan.decisions), default=0)
    for decision in plan.decisions:
        yield from _decision_rows(decision, min(28, names), width)
    yield Styled()


def _decision_rows(decision: DecisionRow, name_width: int, width: int) -> Iterator[Styled]:
    head = f"  {pad(printable(decision.name), name_width)}  "
    value = printable(decision.value)
    why = words_of(decision.why)
    lines = indent(f"{value}  {why}".rstrip(), width, head, " " * (name_width + 4))
    first = Styled(lines[0])
    start = len(head)
    first.stylize("bold", start, min(len(lines[0]), start + len(value)))
    yield first
    yield from (Styled(line, "dim") for line in lines[1:])
