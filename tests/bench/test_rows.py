"""Measured pairs made into rows and a table: what is claimed, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from doctor.bench_levers import BEFORE, NAMES, levers_of, with_settings
from doctor.bench_records import Comparison, Measured, Row
from doctor.bench_rows import before_row, variant_row
from doctor.bench_runs import Variant
from doctor.bench_variants import choose, winners
from doctor.render.bench_page import bench_page
from doctor.render.bench_text import bench_lines
from doctor.render.layout import display_width
from runner.choices import MachineFacts
from runner.plan import make_plan
from runner.profile import DataSection, ModelSection, Profile, RunSection, TrainSection
from runner.text import t

CPU = MachineFacts(device="cpu", cpu_cores_usable=2.0, cpu_flags=("amx_bf16",), torch_version="2.13.0+cpu")
OLD_CPU = MachineFacts(device="cpu", cpu_cores_usable=1.0, torch_version="2.2.0")
A100 = MachineFacts(device="cuda", compute_capability="8.0", gpu_name="A100", cpu_cores_usable=8.0, torch_version="2.6.0")  # fmt: skip
PROFILE = Profile(
    run=RunSection(name="p"), model=ModelSection(hub="a/b"), data=DataSection(train="/rows.csv"), train=TrainSection(batch_size=16)
)  # fmt: skip


def measured(wall_s: float = 10.0, loss: float = 0.7, norm: float = 2.0, **changes: Any) -> Measured:
    values: dict[str, Any] = {"wall_s": wall_s, "cpu_s": 2 * wall_s, "windows": 8, "samples": 128, "tokens": 12_800, "padded_tokens": 25_600,
                              "warm_up_s": 1.0, "loss": loss, "grad_norm": norm, "losses": [0.7, 0.6, 0.5], "peak_bytes": 1 << 30}  # fmt: skip
    return Measured(**{**values, **changes})


def row_of(after: list[Measured], changes: Any = "nothing") -> Row:
    return variant_row("x", t("x"), {}, [(measured(), one) for one in after], changes)


def test_twice_as_fast_in_every_pair_is_faster_with_its_ratio() -> None:
    row = row_of([measured(5.0)] * 6)
    assert row.verdict == "faster" and row.speed is not None
    assert (row.speed.ratio, row.speed.low, row.padding_share) == pytest.approx((2.0, 2.0, 0.5))


@pytest.mark.parametrize(
    ("loss", "norm", "changes", "word"),
    [
        (0.7, 2.0, "nothing", "equal"),
        (0.7 * (1 + 1e-6), 2.0, "nothing", "equal"),
        (0.701, 2.0, "nothing", "differs"),
        (0.701, 2.0, "rounding", "rounding"),
        (0.7, 2.5, "rounding", "differs"),
        (0.3, 9.0, "rows", "other rows"),
    ],
    ids=["same", "last digits", "not the same sum", "bf16", "a gradient that is another", "packed"],
)
def test_the_loss_of_the_same_samples_is_held_against_before(
    loss: float, norm: float, changes: Any, word: str
) -> None:
    assert row_of([measured(5.0, loss, norm)] * 6, changes).loss == word


def variant(name: str, after: list[Measured]) -> Variant:
    lever = next(one for one in levers_of(PROFILE, A100, 16, True) if one.name == name)
    return Variant(lever, [(measured(), one) for one in after])


def test_winners_are_proven_faster_with_the_same_loss_and_meant_for_speed() -> None:
    tried = [
        variant("padding", [measured(5.0)] * 6),
        variant("fused", [measured(5.0), *[measured(11.0)] * 5]),
        variant("workers", [measured(4.0)] * 2),
        variant("bucketing", [measured(4.0, loss=0.9)] * 6),
        variant("accumulation", [measured(4.0)] * 6),
        variant("attention", [measured(4.0)] * 6),
    ]
    assert [lever.name for lever in winners(tried)] == ["padding"]


@pytest.mark.parametrize(
    ("machine", "compiler", "skipped"),
    [
        (A100, True, {"packing"}),
        (A100, False, {"packing", "compile"}),
        (CPU, True, {"pinning", "compile", "packing"}),
        (OLD_CPU, True, {"pinning", "compile", "packing", "precision", "fused", "workers"}),
    ],
    ids=["A100", "no compiler", "CPU with AMX", "old CPU"],
)
def test_levers_that_do_not_apply_are_skipped_with_a_reason(
    machine: MachineFacts, compiler: bool, skipped: set[str]
) -> None:
    levers = levers_of(PROFILE, machine, 16, compiler)
    assert [one.name for one in levers] == list(NAMES)
    assert {one.name for one in levers if one.skipped is not None} == skipped


def test_one_that_is_asked_for_is_measured_where_it_can_be() -> None:
    chosen, skipped = choose(levers_of(PROFILE, CPU, 16, True), ("compile", "pinning"))
    assert ([one.name for one in chosen], [one.name for one in skipped]) == (["compile"], ["pinning"])


@pytest.mark.parametrize("machine", [A100, CPU], ids=["A100", "CPU"])
def test_every_levers_settings_make_a_plan(machine: MachineFacts) -> None:
    for lever in levers_of(PROFILE, machine, 16, True):
        changed = with_settings(PROFILE, {**BEFORE, **lever.settings})
        assert make_plan(changed, machine, "").settings.device == machine.device
        for key, value in lever.settings.items():
            section, _, name = key.partition(".")
            assert getattr(getattr(changed, section), name) == value


def comparison(more: Sequence[Row] = (), **changes: Any) -> Comparison:
    rows = [
        *more,
        before_row(t("every sample padded to max_length, in plain order, fp32, plain AdamW"), BEFORE, [measured()] * 3),
        variant_row("bucketing", t("batches of like length, padded to the longest"), {"train.bucketing": True}, [(measured(), measured(4.0 + n / 100)) for n in range(6)], "nothing"),
        variant_row("checkpointing", t("gradient checkpointing: memory for time"), {}, [(measured(), measured(13.0 + n / 10, loss=0.9)) for n in range(6)], "nothing"),
        Row(name="pinning", title=t("page-locked batches"), verdict="skipped", why=t("page-locked memory is for copies to a GPU, and there is none here")),
    ]  # fmt: skip
    return Comparison(profile="p", device="cpu", model="a/b", batch_size=16, max_length=512, steps=8, pairs_wanted=6, rows=rows,
                      **{"load_begin": 0.1, "load_end": 0.2, **changes})  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_table_fits_80_columns_and_says_what_was_skipped_and_what_is_wrong(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doctor.language import use_language

    use_language(language)
    try:
        lines = list(bench_lines(comparison(), 80))
    finally:
        use_language("en")
    assert max(map(display_width, lines)) <= 80
    text = "\n".join(lines)
    assert "x2.48" in text and "pinning" in text and "29% !" in text


def test_the_whole_answer_of_a_profile_fits_one_screen_and_begins_with_what_to_do() -> None:
    names = ("padding", "fused", "workers", "attention", "accumulation", "itself")
    more = [variant_row(name, t("x"), {}, [(measured(), measured(9.0 + n / 10)) for n in range(6)], "nothing") for name in names]  # fmt: skip
    lines = list(bench_lines(comparison(more, change={"train.bucketing": True}, winners={"train.bucketing": True}), 80))  # fmt: skip
    assert len(lines) <= 24
    assert any("Change in this profile" in line for line in lines[:5])


def test_the_json_is_what_its_schema_says() -> None:
    import jsonschema
    import msgspec

    told = msgspec.json.decode(
        msgspec.json.encode(comparison(notes=[t("a note")], change={"train.workers": 2}))
    )
    jsonschema.validate(told, msgspec.json.schema(Comparison))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**told, "rows": "none"}, msgspec.json.schema(Comparison))


def test_the_page_has_the_plot_and_every_measured_row() -> None:
    page = bench_page(comparison())
    assert page.count("<circle") == 2 and "<table>" in page and "pinning" in page


def test_an_interrupted_comparison_keeps_its_rows_and_says_why_there_are_no_more() -> None:
    lines = list(bench_lines(comparison(stopped=t("interrupted: what was measured until then is shown")), 80))
    assert any("interrupted" in line for line in lines) and any("bucketing" in line for line in lines)
