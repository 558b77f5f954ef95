"""What ``doctor predict`` shows of the lines that its child tells: answers, progress, what was cut, left out or kept."""

from __future__ import annotations

import io
from typing import Any

import pytest

from doctor.commands.predict_show import Progress, show

ANSWER = {
    "text": "a good\x1b[31m film",
    "label": "good",
    "score": 0.9,
    "scores": {"good": 0.9, "bad": 0.1},
    "cut_tokens": 0,
}


class Screen(io.StringIO):
    """A stream that is a terminal, or a file."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(line: dict[str, Any], capsys: pytest.CaptureFixture[str], as_json: bool = False) -> tuple[str, str]:
    show(line, as_json, Progress())
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_an_answer_has_its_label_its_share_and_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown({"answer": ANSWER, "done": 1}, capsys)
    first, second = out.splitlines()
    assert first.startswith("good  0.900  a good") and "\x1b" not in first
    assert second == "    bad 0.100"
    assert err == ""


def test_what_of_a_text_was_not_read_is_said_under_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown({"answer": {**ANSWER, "cut_tokens": 7}, "done": 1}, capsys)
    assert out.splitlines()[-1] == "    cut: the last 7 tokens of the text were not read"
    out, _ = shown({"answer": {**ANSWER, "cut_tokens": 1}, "done": 1}, capsys)
    assert out.splitlines()[-1] == "    cut: the last 1 token of the text were not read"


def test_data_goes_to_stdout_and_talk_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    line = {"done": 9, "written": "/a.csv", "left_out": 2, "cut_rows": 3, "max_length": 128}
    out, err = shown(line, capsys)
    assert out == "9 answers in /a.csv\n"
    assert (
        "2 rows have more or fewer fields" in err and "of 3 texts only the first 128 tokens were read" in err
    )
    out, err = shown({"kept": 512, "part": "/a.part.csv"}, capsys)
    assert (out, "512 answers are kept in /a.part.csv: the same line with --resume" in err) == ("", True)


def test_a_terminal_is_written_to_twice_a_second_at_most_and_cleared() -> None:
    clock, screen = Clock(), Screen(is_terminal=True)
    progress = Progress(clock, screen)
    for tick in range(100):
        clock.now = tick / 50
        progress.answered(16 * (tick + 1))
    assert screen.getvalue().count("\r") == 3
    assert "1216 answered, 800.0 a second" in screen.getvalue()
    progress.end()
    assert screen.getvalue().endswith(" \r")


def test_a_log_gets_a_line_a_minute_and_nothing_before() -> None:
    clock, log = Clock(), Screen(is_terminal=False)
    progress = Progress(clock, log)
    for second in range(130):
        clock.now = second
        progress.answered(16 * (second + 1))
    progress.end()
    assert log.getvalue() == "976 answered, 16.0 a second\n1936 answered, 16.0 a second\n"
