"""A question before an act. Nothing but an explicit yes is a yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen

from doctor.language import say
from doctor.render.layout import indent
from doctor.tui.widgets.bar import Bar, Part
from doctor.tui.widgets.rows import Head
from runner.text import t


class AnswerBar(Bar):
    def __init__(self, yes: str) -> None:
        super().__init__()
        self._yes = yes

    def parts(self) -> Sequence[Part]:
        return [Part("y", f"{self._yes}", "y"), Part("n/Esc", say("No, leave it"), "n")]


class ConfirmScreen(ModalScreen[bool]):
    """Dismisses with True only for ``y``."""

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
    ConfirmScreen > Container {
        width: 70; max-width: 95%; height: auto; padding: 1 2;
        border: heavy ansi_yellow; background: ansi_default;
    }
    ConfirmScreen #question { margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", t("Yes").msgid),
        Binding("n,escape,q", "answer(False)", t("No, leave it").msgid),
    ]

    def __init__(self, question: str, yes: str) -> None:
        super().__init__()
        self._question, self._yes = question, yes

    def compose(self) -> ComposeResult:
        with Container():
            yield Head(self._rows, id="question")
            yield AnswerBar(self._yes)

    def _rows(self, width: int, height: int) -> Sequence[Styled]:
        return [Styled(line, "bold") for line in indent(self._question, width, "", "")]

    def action_answer(self, is_yes: bool) -> None:
        self.dismiss(is_yes)
