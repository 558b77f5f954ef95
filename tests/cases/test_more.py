"""Every case of the rounds after the open one: what is expected is found, nothing ruled out is said, the innocent stay quiet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases.forbidden import rule
from tests.cases.outcome import find_lint, load_cases, run_case

FILES = ("more.toml", "third.toml", "fourth.toml", "fifth_a.toml", "fifth_b.toml")
CASES = [case for name in FILES for case in load_cases(Path(__file__).with_name(name))]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_is_answered_rightly(case: dict[str, Any]) -> None:
    outcome = run_case(case, find_lint())
    assert outcome.passed, outcome.explain()
    assert outcome.ignored_keys == []


def test_every_must_not_is_understood() -> None:
    entries = [(case["id"], entry) for case in CASES for entry in case["must_not"]]
    assert [pair for pair in entries if rule(pair[1]) is None] == []


def test_the_innocent_are_at_least_a_quarter() -> None:
    innocent = [case for case in CASES if not case["expect"]]
    assert len(innocent) * 4 >= len(CASES)
    assert len({case["id"] for case in CASES}) == len(CASES)
