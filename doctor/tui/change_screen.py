"""The few values of a profile that matter, to change before a run: what is left empty stays as the profile has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text as Styled
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input

from doctor.language import say
from doctor.render.layout import indent
from doctor.tui.widgets.bar import Bar, Part
from doctor.tui.widgets.rows import Head
from runner.strings import printable
from runner.text import t

VALUES = (
    "train.epochs", "train.steps", "train.batch_size", "train.micro_batch_size", "train.max_length", "train.lr",
    "train.precision", "run.seed",
)  # fmt: skip
"""What people change; everything else is changed in a profile of one's own."""
MORE = "more"
"""The field for any other ``section.key=value``."""


class ChangeBar(Bar):
    def parts(self) -> list[Part]:
        return [
            Part("⏎", say("Plan with these"), "enter"),
            Part("Tab", say("Next value"), "tab"),
            Part("Esc", say("Leave as it was"), "escape"),
        ]


class ChangeScreen(ModalScreen[dict[str, str] | None]):
    """Dismisses with the changed values by key, or with None where nothing was asked for."""

    DEFAULT_CSS = """
    ChangeScreen { align: center middle; }
    ChangeScreen > Container {
        width: 72; max-width: 98%; height: auto; max-height: 100%; padding: 0 1;
        border: heavy ansi_yellow; background: ansi_default;
    }
    ChangeScreen VerticalScroll { height: auto; max-height: 14; }
    ChangeScreen Horizontal { height: 1; }
    ChangeScreen Horizontal > Head { width: 25; height: 1; }
    ChangeScreen Input { width: 1fr; border: none; padding: 0; height: 1; background: ansi_default; }
    ChangeScreen Input:focus { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", t("Leave as it was").msgid),
        # before the field sees them: what is typed behind them on a slow line arrives with them, and is the next field's
        Binding("tab,down", "app.focus_next", t("Next value").msgid, show=False, priority=True),
        Binding("shift+tab,up", "app.focus_previous", t("Previous value").msgid, show=False, priority=True),
    ]

    def __init__(self, profile: str, changed: Mapping[str, str]) -> None:
        super().__init__()
        self._profile, self._changed = profile, changed

    def compose(self) -> ComposeResult:
        others = " ".join(f"{key}={value}" for key, value in self._changed.items() if key not in VALUES)
        with Container():
            yield Head(self._title)
            with VerticalScroll(can_focus=False):
                for key in VALUES:
                    yield from self._field(key, key, self._changed.get(key, ""), say("as the profile has it"))
                yield from self._field(MORE, say("others"), others, "data.eval_share=0.2 train.warmup=100")
            yield ChangeBar()

    def _field(self, key: str, label: str, value: str, empty: str) -> ComposeResult:
        with Horizontal():
            yield Head(lambda width, height: [Styled(label)])
            field = Input(value, placeholder=empty, name=key, compact=True, select_on_focus=False)
            field.cursor_blink = False  # each blink would be sent over a slow line
            yield field

    def _title(self, width: int, height: int) -> list[Styled]:
        words = say(
            t("Change {profile} for the next run; its file stays as it is.", profile=printable(self._profile))
        )
        return [*(Styled(line, "bold") for line in indent(words, width, "", "")), Styled()]

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    @on(Input.Submitted)
    def _submit(self) -> None:
        values: dict[str, str] = {}
        for field in self.query(Input):
            text = field.value.strip()
            if field.name == MORE:
                values |= {key: value for key, _, value in (word.partition("=") for word in text.split())}
            elif text and field.name:
                values[field.name] = text
        self.dismiss(values)

    def action_cancel(self) -> None:
        self.dismiss(None)
