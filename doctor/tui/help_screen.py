"""Every key, every sign, and what leaving does and does not do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.text import Text as Styled
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from doctor.language import say
from doctor.render.layout import indent, pad
from doctor.tui.base_screen import BaseScreen
from doctor.tui.widgets.rows import Rows
from doctor.tui.words import LEVEL_STYLES, STATUS_STYLES, level_label, status_label
from runner.text import t

_KEY = 12


class HelpScreen(BaseScreen):
    """Help; any of the keys that opened it closes it."""

    HERE = "help"
    DEFAULT_CSS = """
    HelpScreen #help { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q", "close", t("Close help").msgid, key_display="Esc"),
    ]

    def body(self) -> ComposeResult:
        yield Rows(lambda width, height: list(self._rows(width)), id="help")

    def action_close(self) -> None:
        self.app.pop_screen()

    def _rows(self, width: int) -> Iterator[Styled]:
        intro = say(
            "Leaving never ends a run: it has a process of its own, and any SSH session can watch it again."
        )
        yield from (Styled(line, "bold") for line in indent(intro, width, "", ""))
        if self.doctor.is_readonly:
            words = say("Read-only: the keys that start or stop a run are switched off.")
            yield from (Styled(line, "bold yellow") for line in indent(words, width, "", ""))
        for title, keys in _sections(self.doctor.is_readonly):
            yield Styled()
            yield Styled(title, "bold underline")
            for key, words in keys:
                first, *rest = indent(words, width, "", " " * _KEY)
                yield Styled.assemble((pad(key, _KEY), "bold"), first)
                yield from (Styled(line) for line in rest)
        yield from _signs()


def _sections(is_readonly: bool) -> Sequence[tuple[str, list[tuple[str, str]]]]:
    everywhere = [
        ("1 2 3 4", say("machine, profiles, runs, snapshots")),
        ("l", say("English / 中文, at once")),
        ("? F1", say("this help")),
        ("Ctrl+P", say("every command, by name")),
        ("q Ctrl+C", say("leave; runs go on")),
        ("Shift", say("held down, the mouse selects text, to copy a command")),
        ("↑ ↓ ⏎", say("walk through a list and open an item; PgUp and PgDn scroll; the mouse works too")),
    ]
    machine = [
        ("r", say("check again")),
        ("⏎", say("evidence, advice and symptoms of a finding")),
        ("e", say("unfold or fold all")),
        ("Tab", say("the facts that were read, and those that were not")),
    ]
    runs = [
        ("⏎", say("watch a run")),
        ("m c", say("mark a run, then compare another with it")),
    ]
    snapshots = [("⏎", say("what is in a snapshot"))]
    profiles = [("⏎", say("the plan: every choice with its reason"))]
    run = [
        ("Tab", say("next pane, where panes are tabs (F5 to F8 pick one)")),
        ("p Space", say("pause the view; the run goes on")),
        ("g", say("loss on a logarithmic scale")),
        ("Esc", say("back to the runs")),
    ]
    if not is_readonly:
        machine[1:1] = [
            (
                "f",
                say(
                    "what can be done about a finding: each step shown first, applied after a question, undone by a key"
                ),
            ),
            ("d", say("the deep check: torch really used, for a minute at most")),
        ]
        snapshots.append(("x", say("write this machine to a file here, redacted")))
        profiles.append(("s", say("start a run, after a question")))
        run.insert(1, ("s", say("stop the run, after a question: it saves and can be resumed")))
        run.insert(2, ("r", say("resume a run that is over, after a question")))
    return (
        (say("Everywhere"), everywhere),
        (say("Machine"), machine),
        (say("Profiles"), profiles),
        (say("Runs"), runs),
        (say("One run"), run),
        (say("Snapshots"), snapshots),
    )


def _signs() -> Iterator[Styled]:
    yield Styled()
    yield Styled(say("Signs"), "bold underline")
    meanings = {
        "fail": say("a run would fail or go wrong"),
        "warn": say("it costs time, money or trust"),
        "note": say("good to know"),
        "unknown": say("could not look: neither good nor bad"),
    }
    for level, meaning in meanings.items():
        yield Styled.assemble((pad(level_label(level), _KEY), LEVEL_STYLES[level]), meaning)
    states = {
        "running": say("events keep coming"),
        "stalled": say("alive, but nothing was written for a minute"),
        "stopped": say("saved on request; can be resumed"),
        "completed": say("all planned steps are done"),
        "non-finite": say("NaN or infinity; the run ended itself"),
        "lost": say("the process is gone and left no word"),
    }
    for status, meaning in states.items():
        yield Styled.assemble((pad(status_label(status), 18), STATUS_STYLES[status]), meaning)
