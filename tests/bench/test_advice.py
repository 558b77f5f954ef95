"""What a comparison means for the profile: what it has already, what is to be changed, and how that reads."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.bench_advice import change, has, own_settings
from doctor.bench_levers import BEFORE, Lever, levers_of
from doctor.bench_runs import Variant
from doctor.bench_variants import BESIDE, CHANGED, against_itself, changed_beside_itself, itself, rows_of
from runner.plan import Plan, make_plan
from tests.bench.test_rows import CPU, PROFILE, measured
from tests.bench.test_rows import comparison as comparison_of

PLAN: Plan = make_plan(PROFILE, CPU, "")


def lever(name: str) -> Lever:
    return next(one for one in levers_of(PROFILE, CPU, 16, True) if one.name == name)


def tried(name: str, seconds: float, pairs: int = 6) -> Variant:
    return Variant(lever(name), [(measured(), measured(seconds + n / 100)) for n in range(pairs)])


def test_auto_counts_as_what_a_run_would_do() -> None:
    own = own_settings(PLAN)
    assert (own["train.precision"], own["train.bucketing"], own["train.pin_memory"]) == ("bf16", True, False)
    assert has(own, lever("precision").settings) and not has(own, lever("checkpointing").settings)


@pytest.mark.parametrize(
    ("won", "lost", "expected"),
    [
        (["bucketing", "precision"], [], {}),
        (["compile"], [], {"train.compile": True}),
        ([], ["precision"], {"train.precision": "fp32"}),
        ([], ["workers"], {}),
    ],
    ids=["has them all", "lacks one", "has one that is slower", "slower, but not its way"],
)
def test_what_is_to_be_changed_is_what_the_profile_does_otherwise(
    won: list[str], lost: list[str], expected: dict[str, Any]
) -> None:
    assert change(own_settings(PLAN), [*map(lever, won)], [*map(lever, lost)]) == expected


def test_the_changed_profile_is_measured_beside_the_profile_itself() -> None:
    as_it_is = Variant(itself(PROFILE), [(measured(), measured(5.0))] * 6)
    changed, beside = changed_beside_itself([as_it_is, tried("workers", 8.0)], own_settings(PLAN))
    assert changed.lever.settings["train.workers"] == 2 and changed.lever.settings["train.bucketing"] is True
    befores = [measured(10 + n / 10) for n in range(6)]
    changed.pairs = [(before, measured(4.0)) for before in befores]
    beside.pairs = [(before, measured(5.0)) for before in befores[:5]]
    assert [round(as_it_is.wall_s / after.wall_s, 2) for as_it_is, after in against_itself(changed, [changed, beside])] == [1.25] * 5  # fmt: skip
    names = [row.name for row in rows_of(befores, [as_it_is, changed, beside], [])]
    assert CHANGED in names and BESIDE not in names


def test_a_profile_that_has_all_winners_is_not_measured_again() -> None:
    as_it_is = Variant(itself(PROFILE), [(measured(), measured(5.0))] * 6)
    assert changed_beside_itself([as_it_is, tried("bucketing", 5.0)], own_settings(PLAN)) == []


def answer(language: str = "en", **changes: Any) -> str:
    from doctor.language import use_language
    from doctor.render.bench_answer import answer_lines

    use_language(language)
    try:
        return "\n".join(answer_lines(comparison_of(**changes), 200))
    finally:
        use_language("en")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (4.0, "Change in this profile: train.bucketing = true: x1.25 (1.25-1.25) of the profile as it stands, x1.00 the memory, losses equal"),
        (5.0, "no proven difference to the profile as it stands"),
        (6.0, "Leave the profile as it stands"),
    ],
    ids=["faster", "no difference", "slower"],
)  # fmt: skip
def test_the_answer_says_what_the_change_does_to_this_profile(seconds: float, words: str) -> None:
    from doctor.bench_rows import variant_row
    from runner.text import t

    pairs = [(measured(5.0), measured(seconds))] * 6
    row = variant_row(CHANGED, t("x"), {}, pairs, "nothing")
    assert words in answer(change={"train.bucketing": True}, more=[row])


def test_the_answer_names_what_the_profile_does_already_and_what_is_slower_for_less_memory() -> None:
    text = answer(in_profile=["bucketing"])
    assert "the profile's way already: bucketing x2.48" in text and "Slower: checkpointing x0.75" in text
    assert "配置里已经这样做的：bucketing" in answer("zh", in_profile=["bucketing"])


def test_a_contrast_that_turns_out_faster_is_said_and_not_recommended() -> None:
    text = answer(winners={}, change={})
    assert "Faster as well, though tried as a contrast or for memory: bucketing" in text
    assert "Faster as well" not in answer(winners={"train.bucketing": True})


def test_before_is_the_same_for_all_it_is_held_against() -> None:
    assert set(own_settings(PLAN)) == set(BEFORE)
