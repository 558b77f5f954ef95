"""Every reported case: what is expected is found, nothing ruled out is said, the innocent stay quiet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases.forbidden import rule
from tests.cases.outcome import find_lint, load_cases, run_case

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
OPEN = HERE.parents[2] / "shared" / "cases" / "open.toml"

NOT_YET: dict[str, str] = tomllib.loads((HERE / "not_yet.toml").read_text(encoding="utf-8"))["case"]
"""Case -> why the doctor cannot answer it. A gained case must leave this table: the mark is strict."""


def _parameters() -> list[Any]:
    if not OPEN.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{OPEN} is not beside this checkout"))]
    return [
        pytest.param(case, id=case["id"], marks=pytest.mark.xfail(strict=True, reason=NOT_YET[case["id"]]))
        if case["id"] in NOT_YET
        else pytest.param(case, id=case["id"])
        for case in load_cases(OPEN)
    ]


@pytest.mark.parametrize("case", _parameters())
def test_a_reported_case_is_answered_rightly(case: dict[str, Any]) -> None:
    outcome = run_case(case, find_lint())
    assert outcome.passed, outcome.explain()


@pytest.mark.skipif(not OPEN.is_file(), reason="the cases are not beside this checkout")
def test_every_must_not_of_the_open_cases_is_understood() -> None:
    entries = [(case["id"], entry) for case in load_cases(OPEN) for entry in case["must_not"]]
    assert [pair for pair in entries if rule(pair[1]) is None] == []


@pytest.mark.skipif(not OPEN.is_file(), reason="the cases are not beside this checkout")
def test_no_innocent_case_is_excused_and_no_excuse_is_left_over() -> None:
    cases = load_cases(OPEN)
    assert set(NOT_YET) <= {case["id"] for case in cases if case["expect"]}
