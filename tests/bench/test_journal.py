"""Pairs kept between two calls of the same command, and what a comparison is foretold to cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.bench_cost import SLACK_S, Cost, runs_of
from doctor.bench_journal import KEPT_S, Journal, journal_path
from doctor.bench_runs import steps_worth
from doctor.proofs import Place
from runner.text import Text
from tests.bench.test_rows import PROFILE, measured


def kept(path: Path, now: float = 1000.0, told: list[Text] | None = None) -> Journal:
    return Journal(path, (told if told is not None else []).append, lambda: now)


def test_pairs_are_read_back_as_they_were_kept(tmp_path: Path) -> None:
    journal = kept(tmp_path / "bench" / "a.jsonl")
    journal.keep(8, "padding", {"train.pad_to": "longest"}, measured(10.0), measured(5.0))
    journal.keep(8, "workers", {"train.workers": 2}, measured(10.0), measured(9.0))
    found = kept(journal.path).read()
    assert [(one.name, one.steps, one.after) for one in found] == [("padding", 8, measured(5.0)), ("workers", 8, measured(9.0))]  # fmt: skip
    assert found[0].settings == {"train.pad_to": "longest"} and journal.keeps


def test_a_line_that_was_cut_off_costs_that_pair_alone(tmp_path: Path) -> None:
    journal = kept(tmp_path / "a.jsonl")
    journal.keep(8, "padding", {}, measured(), measured())
    with open(journal.path, "ab") as file:
        file.write(b'\n{"at": 1000, "na')
    journal.keep(8, "workers", {}, measured(), measured())
    assert [one.name for one in journal.read()] == ["padding", "workers"]


def test_pairs_of_another_day_are_measured_anew(tmp_path: Path) -> None:
    kept(tmp_path / "a.jsonl").keep(8, "padding", {}, measured(), measured())
    assert kept(tmp_path / "a.jsonl", 999.0 + KEPT_S).read()
    assert kept(tmp_path / "a.jsonl", 1001.0 + KEPT_S).read() == []


def test_where_nothing_can_be_kept_that_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[Text] = []
    journal = kept(tmp_path / "file" / "a.jsonl", told=told)
    for _ in range(2):
        journal.keep(8, "padding", {}, measured(), measured())
    assert len(told) == 1 and "cannot be kept" in told[0].msgid and not journal.keeps


def test_another_machine_or_another_data_file_is_another_question(tmp_path: Path) -> None:
    import msgspec

    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\na,0\n")
    data = msgspec.structs.replace(PROFILE.data, train=[str(rows)])
    profile = msgspec.structs.replace(PROFILE, data=data)
    environ = {"DOCTOR_STATE_DIR": str(tmp_path)}
    first = journal_path(profile, Place(torch="2.13.0"), environ)
    assert first == journal_path(profile, Place(torch="2.13.0"), environ)
    assert first != journal_path(profile, Place(torch="2.12.0"), environ)
    rows.write_text("text,label\na,0\nb,1\n")
    assert first != journal_path(profile, Place(torch="2.13.0"), environ)


def test_what_is_to_come_is_counted_with_one_before_for_two() -> None:
    cost = Cost()
    cost.took("before", 10.0)
    cost.took("workers", 30.0)
    left = {"padding": 3, "workers": 2}
    assert (runs_of(left), cost.left_s(left)) == (8, 3 * 10 + 2 * 30 + 3 * 10)


@pytest.mark.parametrize(
    ("left_s", "is_slow", "expected"),
    [
        (1000.0, False, 10 * 10 + SLACK_S),
        (1000.0, True, 1000 + SLACK_S),
        (20.0, False, 20 + SLACK_S),
    ],
    ids=["ten times before", "it compiles first", "no longer than all may take"],
)
def test_a_run_may_take_so_long_and_no_longer(left_s: float, is_slow: bool, expected: float) -> None:
    cost = Cost()
    assert cost.limit_s(left_s, is_slow) == left_s + SLACK_S
    cost.took("before", 10.0)
    assert cost.limit_s(left_s, is_slow) == expected


@pytest.mark.parametrize(("wall_s", "steps"), [(10.0, 8), (0.9, 64), (0.0001, 512)], ids=["slow", "quick", "no time at all"])  # fmt: skip
def test_a_quick_models_runs_have_so_many_steps_that_there_is_something_to_time(
    wall_s: float, steps: int
) -> None:
    assert steps_worth(measured(wall_s)) == steps
