"""The command line's own words: in the reader's language, within the terminal's width, and without libraries."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from doctor.commands import VERBS
from doctor.render.layout import display_width

NOT_FOR_HELP = ("typing", "pathlib", "json", "shutil", "textwrap", "msgspec", "locale")


def doctor(*argv: str, columns: str = "80") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "COLUMNS": columns, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-m", "doctor", *argv], capture_output=True, text=True, encoding="utf-8", env=environ, check=False
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["", "check", "explain", "lint", "snapshot"])
def test_the_chinese_help_fits_eighty_columns(verb: str) -> None:
    done = doctor(*filter(None, [verb]), "--help", "--lang", "zh")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if display_width(line) > 80] == []


def test_the_chinese_help_and_errors_hold_none_of_argparses_own_english() -> None:
    said = (
        doctor("check", "--help", "--lang", "zh").stdout
        + doctor("check", "--fail-on", "x", "--lang", "zh").stderr
    )
    said += doctor("--lang", "zh", "--nonsense").stderr + doctor("--help", "--lang", "zh").stdout
    english = ("usage:", "options:", "positional", "show this", "error:", "invalid choice", "unrecognized")
    assert [word for word in english if word in said] == []


def test_in_english_argparse_keeps_its_words() -> None:
    done = doctor("check", "--fail-on", "x", "--lang", "en")
    assert done.returncode == 2
    assert "error: argument --fail-on: invalid choice: 'x' (choose from" in done.stderr


def test_help_names_every_verb_and_loads_no_library_it_can_do_without() -> None:
    code = (
        "import sys; before = set(sys.modules); from doctor.commands import main\n"
        "try: main(['--help'])\n"
        f"except SystemExit: print('LOADED', sorted((set(sys.modules) - before) & set({NOT_FOR_HELP!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "LOADED []"
    assert [verb for verb in VERBS if f"\n    {verb} " not in done.stdout] == []
