"""Laying words out: a command that is to be copied stays in one piece, and the width asked for is kept."""

from __future__ import annotations

import io

import pytest

from doctor.render.layout import columns, indent, wrap

COMMAND = "/root/miniconda3/bin/python -m pip install torch==2.11.0+cu126 --index-url https://download.pytorch.org/whl/cu126"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Take the build that runs here:", "(or rent another machine)."),
        ("换成能在这里运行的版本：", "（或换一台机器）。"),
    ],
)
def test_a_command_to_be_copied_is_never_cut_in_two(before: str, after: str) -> None:
    space = " " if before.isascii() else ""
    lines = indent(f"{before}{space}{COMMAND}{space}{after}", 60, "→ ", "  ", commands=True)
    assert lines == [f"→ {before}", f"  {COMMAND}", f"  {after}"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("First export HF_HOME=/data/hf or move it.", "export HF_HOME=/data/hf"),
        ("Then kill 5520, and look again.", "kill 5520,"),
        ("See mkdir -p /a && mv /b /a until it is done.", "mkdir -p /a && mv /b /a"),
        ("先 export HF_HOME=/data/hf 。已有的缓存留着", "export HF_HOME=/data/hf"),
    ],
)
def test_what_follows_a_command_in_a_sentence_is_no_part_of_it(words: str, command: str) -> None:
    assert command in wrap(words, len(command), commands=True)


def test_without_being_asked_a_long_command_is_wrapped_like_words() -> None:
    assert all(len(line) <= 70 for line in wrap(f"Take {COMMAND}", 70))


def test_without_a_terminal_columns_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert columns(io.StringIO()) == 72
    monkeypatch.delenv("COLUMNS")
    assert columns(io.StringIO()) == 100
