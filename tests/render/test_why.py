"""``check --why``: for every finding that a recorded machine or a reported case gives, and for every id there is.

Each answer says what was read, by which command a person sees it, which rule applied with its source, and what would
silence it; in both languages, and nothing of one in the other.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from doctor import service
from doctor.checks import all_checks, facts_at
from doctor.judge import judge
from doctor.language import use_language
from doctor.lint import RULE_IDS
from doctor.model import Evidence, Facts, Report, Snapshot, Workload, ok
from doctor.purpose import judge_for_script
from doctor.render.rule_source import function_of, lint_file_of, tables_of
from doctor.render.text import shown_value
from doctor.render.why import command_of, why_lines
from tests.cases.outcome import load_cases, machine_of

HERE = Path(__file__).parents[1]
MACHINES = sorted((HERE / "machines").glob("*.json"))
LINE = re.compile(r".+:\d+")
# A remark in English behind a value: (default), (by its name); names of variables and numbers are no words.
ENGLISH_REMARK = re.compile(r"\([a-z]+(?: [a-z]+)*\)$")


@cache
def judged() -> tuple[tuple[str, Snapshot, Report], ...]:
    """Return every recorded machine and every case of ours, judged."""
    found = []
    for path in MACHINES:
        snapshot = service.load(path)
        found.append((path.stem, snapshot, judge(snapshot)))
    for name in ("more.toml", "third.toml", "fourth.toml"):
        for case in load_cases(HERE / "cases" / name):
            script = case.get("script")
            snapshot, _ = machine_of(case["id"], case.get("facts", {}), script)
            if script:
                found.append((case["id"], *judge_for_script(snapshot, script, "train.py")))
            else:
                found.append((case["id"], snapshot, judge(snapshot)))
    return tuple(found)


@pytest.mark.no_cover
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_finding_of_every_recorded_machine_tells_why(language: str) -> None:
    use_language(language)
    rule, silent = ("The rule: ", "It falls silent") if language == "en" else ("规则：", "就不再报")
    ids: set[str] = set()
    try:
        for name, snapshot, report in judged():
            for finding_id in {item.id for item in report.findings()}:
                text = "\n".join(why_lines(finding_id, report, snapshot, 10_000, False))
                assert rule in text and silent in text, (name, finding_id)
                assert "doctor/checks/" in text or "doctor/lint/" in text, (name, finding_id)
                ids.add(finding_id)
    finally:
        use_language("en")
    assert len(ids) > 100


def test_all_that_is_shown_as_evidence_can_be_seen_by_a_command_or_in_the_facts() -> None:
    for name, snapshot, report in judged():
        for item in report.findings():
            for row in item.evidence:
                assert command_of(row.fact, snapshot.facts), (name, item.id, row.fact)
                if not LINE.fullmatch(row.fact):
                    facts_at(snapshot.facts, row.fact)


def _is_quoted(fact: str) -> bool:
    """A line of a script or of the kernel's log is shown as it stands there."""
    return bool(LINE.fullmatch(fact)) or fact.startswith("kernel_log.")


def test_no_remark_behind_a_value_stays_english_in_chinese() -> None:
    use_language("zh")
    try:
        for name, _, report in judged():
            for item in report.findings():
                for row in item.evidence:
                    words = shown_value(row)
                    assert _is_quoted(row.fact) or not ENGLISH_REMARK.search(words), (
                        name,
                        item.id,
                        words,
                    )
    finally:
        use_language("en")


@pytest.mark.parametrize(
    "finding_id", sorted({name for one in all_checks() for name in one.ids} | set(RULE_IDS))
)
def test_every_id_tells_its_rule_on_a_machine_without_it(finding_id: str) -> None:
    snapshot = Snapshot()
    text = "\n".join(why_lines(finding_id, judge(snapshot), snapshot, 100, False))
    assert "The rule: " in text
    assert "Not found on this machine: " in text


def test_the_tables_that_a_rule_compares_with_are_named_with_their_day() -> None:
    checks = {name: one for one in all_checks() for name in one.ids}
    asked = checks["driver-too-old-for-torch-cuda"]
    assert function_of(asked) == "doctor/checks/driver.py driver_runs_torch"
    assert "doctor/tables/drivers.toml (2026-11-30)" in tables_of(asked)
    assert all(re.search(r"\(20\d\d-\d\d-\d\d\)$", table) for one in all_checks() for table in tables_of(one))


@pytest.mark.parametrize("finding_id", RULE_IDS)
def test_every_rule_on_scripts_stands_in_a_file(finding_id: str) -> None:
    assert (HERE.parent / lint_file_of(finding_id)).is_file()


@pytest.mark.parametrize(
    ("fact", "command"),
    [
        ("driver.cuda_version", "nvidia-smi -q | grep 'CUDA Version'"),
        ("packages.items[3].version", "python -m pip list -v"),
        ("workload.num_workers", "cat 'my train.py'"),
        ("my dir/train.py:42", "sed -n 42p 'my dir/train.py'"),
        ("nothing.such", ""),
    ],
)
def test_the_command_shows_that_very_value(fact: str, command: str) -> None:
    assert command_of(fact, Facts(workload=ok(Workload(source="my train.py")))) == command


def test_bytes_are_told_exactly_where_one_asks_why() -> None:
    row = Evidence(fact="storage.mounts[0].free_bytes", value="/ 2254857830")
    assert (shown_value(row), shown_value(row, exact=True)) == ("/ 2.1 GB", "/ 2254857830")
