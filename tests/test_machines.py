"""Recorded machines: each file under machines/ judged and compared with what machines/expected*.toml says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from doctor.judge import judge
from doctor.machine import load_snapshot
from doctor.model import LEVELS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = Path(__file__).parent / "machines"


def _expected() -> dict[str, dict[str, Any]]:
    """Return machine -> its row, from every expected*.toml; a machine may stand in one of them only."""
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(MACHINES.glob("expected*.toml")):
        for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in rows:
                raise ValueError(f"{path.name}: {name} is already described elsewhere")
            rows[name] = row
    return rows


EXPECTED = _expected()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_machine_is_judged_as_expected(name: str) -> None:
    row = EXPECTED[name]
    report = judge(load_snapshot(MACHINES / f"{name}.json"))
    assert report.crashed == ()
    given = {(finding.id, finding.level) for finding in report.findings()}
    said = "; ".join(f"{finding.level} {finding.id}: {finding.title}" for finding in report.findings())
    expected = set(row.get("expect", {}).items())
    assert expected <= given, f"missed {expected - given}; said: {said or 'nothing'}"
    assert not {finding_id for finding_id, _ in given} & set(row.get("forbid", [])), said
    heads = [diagnosis.finding for diagnosis in report.diagnoses]
    loud = {head.id for head in heads if head.level in ("fail", "warn")} - set(row.get("expect", {}))
    assert loud <= set(row.get("allow", [])), f"{loud} nobody expected; said: {said}"


def test_every_machine_has_a_row_and_every_row_a_machine() -> None:
    assert {path.stem for path in MACHINES.glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_row_is_well_formed(name: str) -> None:
    row = EXPECTED[name]
    assert set(row) <= {"about", "expect", "forbid", "allow"}
    assert row["about"]
    assert set(row.get("expect", {}).values()) <= set(LEVELS)
