"""docs/techniques.md names settings that a profile has and tests that are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runner.plan import decode_plan, encode_plan, make_plan
from runner.profile import Profile, load_profile
from tests.runner.tiny import ONE_CORE, PROFILE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "techniques.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| (.+) \| ([^|]+) \|$", PAGE, re.MULTILINE)[2:]

LINES = re.findall(r"^\| (.+?) \| `([^|]+)` \|$", PAGE.partition("## The line for each")[2], re.MULTILINE)


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


def test_every_technique_with_a_setting_has_its_line() -> None:
    without = {
        "apex levels (`fp16_opt_level` O2, O3)",
        "pipeline parallelism, ZeRO-Infinity (a disk), Megatron",
        "a DeepSpeed or accelerate file that is there already",
        "data parallel flags (`find_unused_parameters`, `bucket_cap_mb`)",
        "out of memory: halve the batch",
        "large files in portions",
        "`CUDA out of memory` foretold by a formula",
        "ONNX with dynamic axes",
    }
    assert {name for name, _, _ in ROWS} - without == {name for name, _ in LINES}


@pytest.mark.parametrize(("technique", "line"), LINES, ids=[name[:50] for name, _ in LINES])
def test_a_line_is_planned_as_it_stands(technique: str, line: str, tmp_path: Path) -> None:
    """As ``doctor run PROFILE --set ... --dry-run`` does: validated, planned, and in the plan that the runner reads."""
    (tmp_path / "tiny.toml").write_text(PROFILE)
    words = shlex.split(line)
    assert words and all("=" in word for word in words)
    before, profile = (load_profile(tmp_path / "tiny.toml", overrides) for overrides in ([], words))
    plan = decode_plan(encode_plan(make_plan(profile, ONE_CORE, "2026-11-30T00:00:00Z")))
    for word in words:
        section, _, key = word.partition("=")[0].partition(".")
        told: Any = getattr(getattr(plan.profile, section), key)
        assert told == getattr(getattr(profile, section), key)
        default = getattr(getattr(before, section), key)
        assert told != default or word.partition("=")[2] in (str(default), str(default).lower()), f"{word} changes nothing"  # fmt: skip
