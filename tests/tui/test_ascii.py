"""A terminal that draws ASCII only is found out, told so, and sent nothing else, column for column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doctor.render.layout import display_width
from doctor.tui.ascii import in_ascii
from doctor.tui.terminal import shows_unicode
from tests.tui.pictures import FOLDER

UTF8 = {"LANG": "en_US.UTF-8"}


@pytest.mark.parametrize(
    ("environ", "tmux", "probed", "expected"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "", 3, True),
        ({"LC_CTYPE": "UTF-8"}, "", 3, True),
        ({"LC_ALL": "C", **UTF8}, "", 3, False),
        ({}, "", 1, True),
        ({}, "", 3, False),
        ({"LANG": "C"}, "", None, True),
        ({"TMUX": "/tmp/s,1,0"}, "0", 1, False),
        ({"TMUX": "/tmp/s,1,0", **UTF8}, "0", 1, False),
        ({"TMUX": "/tmp/s,1,0"}, "1", 3, True),
        ({"TMUX": "/tmp/s,1,0"}, "", 3, False),
        ({"TERM": "linux", **UTF8}, "", 1, False),
        ({"DOCTOR_CHARACTERS": "ascii", **UTF8}, "", 1, False),
        ({"DOCTOR_CHARACTERS": "unicode", "TERM": "linux"}, "", 3, True),
    ],
    ids=[
        "a UTF-8 locale is believed", "macOS sends LC_CTYPE=UTF-8", "LC_ALL counts before LANG", "no locale, the terminal draws one column",
        "no locale, it draws three bytes", "no locale, no answer", "tmux without UTF-8", "tmux without UTF-8 under a UTF-8 locale",
        "tmux with -u", "tmux that says nothing", "the kernel's console", "told: ascii", "told: unicode",
    ],
)  # fmt: skip
def test_what_a_terminal_draws_is_known(
    environ: dict[str, str], tmux: str, probed: int | None, expected: bool
) -> None:
    assert shows_unicode(environ, lambda: tmux, lambda: probed) is expected


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*-en.txt")), ids=lambda path: path.stem)
def test_every_picture_has_its_ascii_twin_of_the_same_width(path: Path) -> None:
    for line in path.read_text("utf-8").partition("\n-- how")[0].splitlines():
        shown = in_ascii(line)
        assert shown.isascii()
        assert len(shown) == display_width(line)
        signs = re.sub(r"[\u2e80-\u9fff\uff00-\uffef]", "", line)  # what is Chinese has no sign
        assert in_ascii(signs).count("?") == signs.count("?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("✗ FAIL", "x FAIL"), ("▌ ✓ 3 · 4", "> + 3 - 4"), ("外卖", "????"), ("\x1b[1m█░\x1b[0m", "\x1b[1m#.\x1b[0m"),
     ("⠁⠠⣀⡇⠒⡁", "'-.|-:"), ("plain", "plain")],
    ids=["signs", "cursor", "Chinese is question marks as wide", "commands stay", "Braille by height", "ASCII is left alone"],
)  # fmt: skip
def test_signs_become_ascii(text: str, expected: str) -> None:
    assert in_ascii(text) == expected
