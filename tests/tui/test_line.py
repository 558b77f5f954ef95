"""A slow terminal is waited for, a mute one is not, and one whose answer was lost is asked again."""

from __future__ import annotations

from doctor.tui.line import LOST_AFTER_S, MUTE_AFTER_S, WHERE_IS_THE_CURSOR, Line


class Terminal:
    def __init__(self) -> None:
        self.now = 0.0
        self.got: list[str] = []
        self.line = Line(self.got.append, lambda: self.now)


def test_nothing_is_drawn_until_the_terminal_has_answered() -> None:
    terminal = Terminal()
    assert terminal.line.is_free()
    terminal.line.ask()
    terminal.line.ask()
    assert terminal.got == [WHERE_IS_THE_CURSOR], "one question at a time"
    terminal.now = 3.0
    assert not terminal.line.is_free()
    terminal.line.answered()
    assert terminal.line.is_free()
    terminal.line.ask()
    assert len(terminal.got) == 2


def test_a_terminal_without_answers_is_drawn_to_and_asked_no_more() -> None:
    terminal = Terminal()
    terminal.line.ask()
    terminal.now = MUTE_AFTER_S
    assert terminal.line.is_free()
    terminal.line.ask()
    assert len(terminal.got) == 1
    assert terminal.line.is_free()


def test_an_answer_that_was_lost_holds_nothing_up_for_ever() -> None:
    terminal = Terminal()
    terminal.line.ask()
    terminal.line.answered()
    terminal.line.ask()
    terminal.now = MUTE_AFTER_S
    assert not terminal.line.is_free(), "it has answered before: the line is slow"
    terminal.now = LOST_AFTER_S
    assert terminal.line.is_free()
    terminal.line.ask()
    assert len(terminal.got) == 3


def test_where_there_is_no_terminal_nothing_is_asked() -> None:
    line = Line(None, lambda: 0.0)
    line.ask()
    assert line.is_free()
