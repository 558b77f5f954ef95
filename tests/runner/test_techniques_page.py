"""docs/techniques.md names settings that a profile has and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from runner.profile import Profile

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "techniques.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| (.+) \| ([^|]+) \|$", PAGE, re.MULTILINE)[2:]


def known_settings() -> set[str]:
    """Return every ``section.key`` of a profile."""
    sections = {field.name: field.type for field in msgspec.structs.fields(Profile)}
    return {
        f"{name}.{field.name}" for name, kind in sections.items() for field in msgspec.structs.fields(kind)
    }


def test_every_setting_on_the_page_is_one() -> None:
    named = set(re.findall(r"`((?:run|model|data|train)\.\w+)`", PAGE))
    assert len(named) > 35 and named <= known_settings(), named - known_settings()


def test_every_technique_has_an_answer_and_a_test_or_says_that_there_is_none() -> None:
    assert len(ROWS) > 30
    assert all(".py" in test or "no setting" in answer for _, answer, test in ROWS)


@pytest.mark.parametrize("cell", [test for _, _, test in ROWS if test != "-"], ids=lambda cell: cell[:60])
def test_a_test_that_is_named_is_there(cell: str) -> None:
    for part in cell.split(";"):
        file, _, names = part.strip().partition(": ")
        path = ROOT / file if "/" in file else ROOT / "tests" / "runner" / file
        source = path.read_text(encoding="utf-8")
        for name in filter(None, names.split(", ")):
            assert f"def test_{name.strip()}(" in source, f"{file} has no test_{name}"
