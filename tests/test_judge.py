"""Judging: statuses make answers, symptoms fold under causes, a broken check costs only its own answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from doctor.checks import Check, all_checks, check
from doctor.judge import exit_code, fold_symptoms, judge
from doctor.model import Driver, Facts, Finding, Gpus, Level, Reading, Snapshot, ok, t
from doctor.render.text import brief_line


def finding(finding_id: str, level: Level = "fail", cause_of: tuple[str, ...] = ()) -> Finding:
    return Finding(id=finding_id, level=level, title=t("x"), cause_of=cause_of)


def asks_driver(driver: Driver) -> Iterator[Finding]:
    if driver.version == "1":
        yield finding("old")


def one(function: Any, needs: tuple[str, ...] = ("driver",), ids: tuple[str, ...] = ("old",)) -> Check:
    return Check("asks", ids, "?", needs, (), function)


def machine(driver: Reading[Driver]) -> Snapshot:
    return Snapshot(facts=Facts(driver=driver))


@pytest.mark.parametrize(
    ("reading", "code", "place"),
    [
        pytest.param(ok(Driver(version="1")), 1, "diagnoses", id="found"),
        pytest.param(ok(Driver(version="2")), 0, "passed", id="looked and well"),
        pytest.param(Reading(status="absent"), 0, "not_applicable", id="absent is not applicable"),
        pytest.param(Reading(status="skipped"), 0, "not_applicable", id="skipped stays silent"),
        pytest.param(
            Reading(status="failed", why=t("hung")), 3, "unanswered", id="failed is unknown, never fine"
        ),
    ],
)
def test_a_readings_status_decides_what_a_check_may_say(
    reading: Reading[Driver], code: int, place: str
) -> None:
    report = judge(machine(reading), [one(asks_driver)])
    assert exit_code(report) == code
    assert len(getattr(report, place)) == 1


def test_a_check_that_raises_is_named_and_the_others_answer() -> None:
    def breaks(driver: Driver) -> Iterator[Finding]:
        yield from (finding(str(1 // number)) for number in (0,))

    report = judge(machine(ok(Driver(version="1"))), [one(breaks), one(asks_driver)])
    assert report.crashed == ("asks: ZeroDivisionError: integer division or modulo by zero",)
    assert [item.id for item in report.findings()] == ["old"]


def test_a_list_that_was_not_read_to_its_end_is_said() -> None:
    report = judge(Snapshot(facts=Facts(gpus=ok(Gpus(unread={"items": t("NVML went silent")})))), [])
    assert [(item.section, str(item.why)) for item in report.unread] == [("gpus", "NVML went silent")]


def test_a_check_that_broke_has_not_found_all_well() -> None:
    def breaks(driver: Driver) -> Iterator[Finding]:
        yield from (finding(str(1 // number)) for number in (0,))

    report = judge(machine(ok(Driver(version="2"))), [one(breaks), one(asks_driver)])
    assert exit_code(report) == 3
    assert "nothing wrong" not in brief_line(report)


def test_a_finding_that_was_not_declared_is_a_bug_of_ours() -> None:
    report = judge(machine(ok(Driver(version="1"))), [one(asks_driver, ids=("other",))])
    assert report.findings() == []
    assert "did not declare" in report.crashed[0]


def test_a_symptom_stands_under_its_cause_and_a_chain_under_its_head() -> None:
    found = fold_symptoms(
        [finding("c", "warn"), finding("b", "warn", ("c",)), finding("a", "fail", ("b",)), finding("d")]
    )
    assert [(item.finding.id, [under.id for under in item.symptoms]) for item in found] == [
        ("a", ["c", "b"]),
        ("d", []),
    ]


def test_findings_that_name_each_other_stay_apart() -> None:
    found = fold_symptoms([finding("a", cause_of=("b",)), finding("b", cause_of=("a",))])
    assert sorted(item.finding.id for item in found) == ["a", "b"]


@pytest.mark.parametrize(
    ("level", "fail_on", "code"),
    [
        ("fail", "fail", 1),
        ("warn", "fail", 0),
        ("warn", "warn", 1),
        ("note", "warn", 0),
        ("unknown", "fail", 3),
    ],
)
def test_the_exit_code_follows_fail_on(level: Level, fail_on: Level, code: int) -> None:
    report = judge(machine(ok(Driver())), [one(lambda driver: iter([finding("old", level)]))])
    assert exit_code(report, fail_on) == code


def test_an_unknown_section_fails_at_import() -> None:
    def bad(drivers: Driver) -> Iterator[Finding]:
        """?"""
        yield finding("never")

    with pytest.raises(TypeError, match="no section 'drivers'"):
        check("never-1")(bad)


def test_a_wrong_annotation_fails_at_import() -> None:
    def bad(driver: Gpus) -> Iterator[Finding]:
        """?"""
        yield finding("never")

    with pytest.raises(TypeError, match="must be Driver or Reading"):
        check("never-2")(bad)


def test_a_taken_id_fails_at_import() -> None:
    taken = all_checks()[0].ids[0]

    def second(driver: Driver) -> Iterator[Finding]:
        """?"""
        yield finding(taken)

    with pytest.raises(ValueError, match="already given"):
        check(taken)(second)


def test_every_section_failed_leaves_no_check_that_says_fine() -> None:
    failed: Reading[Any] = Reading(status="failed", why=t("could not look"))
    report = judge(Snapshot(facts=Facts(**dict.fromkeys(Facts.__struct_fields__, failed))))
    assert report.crashed == ()
    answered = set(report.passed)
    assert not [one.name for one in all_checks() if one.needs and one.name in answered]
    assert exit_code(report) in (1, 3)
