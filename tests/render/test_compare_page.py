"""Two runs side by side: what differs stands there, what could not be compared is said, nothing escapes its place."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.comparison import Comparison, compare, equal_until, told
from doctor.model import Distribution, Driver, Facts, Packages, Snapshot, ok
from doctor.proofs import ProofRecord
from doctor.render.compare_page import as_html, as_json, as_markdown, as_text
from doctor.render.compare_rows import colours_of, names
from doctor.render.curve_svg import chart
from doctor.render.layout import display_width
from doctor.run_page import Page
from runner.command_plan import CommandPlan, sealed
from runner.events import RunEvent
from runner.plan import Plan, make_plan
from runner.profile import load_profile
from runner.state import Curve, fold
from runner.text import t
from tests.runner.tiny import ONE_CORE, PROFILE

EVIL = "<img src=x onerror=alert(1)>|"


def state(losses: list[float], accuracy: float, seconds: float) -> Any:
    kinds: list[tuple[str, int, dict[str, Any]]] = [
        ("run-started", 0, {"steps_total": len(losses)}),
        *(
            (
                "step",
                step,
                {
                    "loss": loss,
                    "lr": 0.1,
                    "samples": 8,
                    "tokens": 80,
                    "padded_tokens": 100,
                    "seconds": seconds,
                },
            )
            for step, loss in enumerate(losses, 1)
        ),
        ("evaluation", len(losses), {"accuracy": accuracy, "loss": 0.5}),
        (
            "run-finished",
            0,
            {"outcome": "completed", "seconds": 10 * seconds, "metrics": {"accuracy": accuracy}},
        ),
    ]
    return fold(
        RunEvent(seq=n, t=1000.0 + n, source="trainer-0", kind=kind, step=step, data=data)
        for n, (kind, step, data) in enumerate(kinds)
    )


def snapshot(torch: str, driver: str) -> Snapshot:
    packages = Packages(
        items=(Distribution(name="torch", version=torch), Distribution(name="numpy", version="2.0"))
    )
    return Snapshot(facts=Facts(packages=ok(packages), driver=ok(Driver(version=driver))))


@pytest.fixture
def plans(tmp_path: Path) -> tuple[Plan, Plan]:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    one, other = (
        make_plan(load_profile(tmp_path / "tiny.toml", overrides), ONE_CORE, "2026-11-30T00:00:00Z")
        for overrides in ([], ["train.lr=0.5"])
    )
    return one, other


@pytest.fixture
def found(plans: tuple[Plan, Plan]) -> Comparison:
    a = Page(
        "base", "completed", state([2.0, 1.0, 0.5], 0.75, 1.0), 0.0, plans[0], snapshot("2.6.0", "550.54")
    )
    b = Page(
        f"other {EVIL}",
        "completed",
        state([2.0, 1.5, 1.0], 0.5, 0.5),
        0.0,
        plans[1],
        snapshot("2.7.0", "570.86"),
    )
    return compare(a, b)


def test_only_settings_that_differ_are_listed(found: Comparison) -> None:
    assert [(pair.name, pair.a, pair.b) for pair in found.settings] == [("train.lr", 0.01, 0.5)]


def test_results_stand_beside_each_other_with_the_change(found: Comparison) -> None:
    results = {pair.name: (pair.a, pair.b, pair.change) for pair in found.results}
    assert results["accuracy"] == (0.75, 0.5, -0.25)
    assert results["loss"] == (0.5, 1.0, 0.5)
    assert results["samples_per_s"] == (8.0, 16.0, 8.0)
    assert results["seconds"] == (10.0, 5.0, -5.0)


def test_packages_and_driver_are_compared(found: Comparison) -> None:
    assert found.environment is not None
    subjects = {one.subject: (one.a, one.b) for one in found.environment.differences}
    assert ("2.6.0", "2.7.0") in subjects.values() and ("550.54", "570.86") in subjects.values()


def test_the_text_fits_an_eighty_column_terminal(found: Comparison) -> None:
    text = as_text(found, 80, True)
    assert max(display_width(line) for line in text.splitlines()) <= 80
    assert "train.lr" in text and "+100.0 %" in text and "-0.25" in text
    assert "Both recorded the same losses up to step 1." in text


def test_a_page_is_whole_in_itself_and_harmless(found: Comparison) -> None:
    html = as_html(found)
    seen: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append(tag)
            assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)

    Tags().feed(html)
    assert "img" not in seen and "script" not in seen and "svg" in seen
    assert "&lt;img" in as_markdown(found) and "<img" not in as_markdown(found)


def test_json_holds_both_curves(found: Comparison) -> None:
    tree = json.loads(as_json(found))
    assert tree["settings"] == {"train.lr": {"a": 0.01, "b": 0.5}}
    assert [len(curve["value"]) for curve in tree["curves"]["loss"].values()] == [3, 1, 3, 1]


def test_what_could_not_be_read_is_said_and_not_called_equal() -> None:
    unread = {"plan.json": t("it was changed"), "snapshot.json": t("it is gone")}
    a, b = (Page(name, "lost", fold([]), 0.0, unread=unread) for name in ("a", "b"))
    text = as_text(compare(a, b), 80, True)
    assert (
        "Settings not compared: a: it was changed" in text
        and "Environments not compared: a: it is gone" in text
    )
    assert "no setting differs" not in text


def test_two_commands_are_compared_by_their_words_without_their_keys() -> None:
    one = sealed(
        CommandPlan(
            name="train", made_at="", argv=("python", "train.py", "--api-key", "s3cr3tvalue123"), cwd="/w",
            environment={"OMP_NUM_THREADS": "8"}, decisions=(),
        )
    )  # fmt: skip
    other = sealed(msgspec.structs.replace(one, argv=("python", "train.py", "--lr", "1"), environment={}))
    assert "s3cr3tvalue123" not in str(told(one))
    a, b = (
        Page(name, "completed", fold([]), 0.0, plan, Snapshot()) for name, plan in (("a", one), ("b", other))
    )
    assert [pair.name for pair in compare(a, b).settings] == [
        "--api-key",
        "--lr",
        "environment.OMP_NUM_THREADS",
    ]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param([1.0, 0.5], [1.0, 0.5], 2, id="all"),
        pytest.param([1.0, 0.5], [1.0, 0.5000001], 1, id="the last digit"),
        pytest.param([1.0], [2.0], None, id="none"),
        pytest.param([1.0, 0.5], [1.0], 1, id="one is longer"),
    ],
)
def test_equal_beginnings(one: list[float], other: list[float], expected: float | None) -> None:
    curves = []
    for values in (one, other):
        curve = Curve()
        for step, value in enumerate(values, 1):
            curve.add(step, value)
        curves.append(curve)
    assert equal_until(*curves) == expected


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [("1", "the same bits over 2 steps"), ("9", "part in step 1, in forward or backward")],
    ids=["agree", "part"],
)
def test_proofs_of_both_are_held_against_each_other(gradient: str, expected: str) -> None:
    records = [
        ProofRecord(
            steps=2, sha256=value, level="new-process", lines=({"window": 0, "gradients": {"w": value}},)
        )
        for value in ("1", gradient)
    ]
    a, b = (
        Page(name, "completed", fold([]), 0.0, proof=record)
        for name, record in zip("ab", records, strict=True)
    )
    for page in (a, b):
        page.unread.update({"plan.json": t("it is gone"), "snapshot.json": t("it is gone")})
    assert expected in as_text(compare(a, b), 100, True)


def test_a_run_has_its_colours_in_every_chart_and_is_named_where_it_stands_alone(found: Comparison) -> None:
    a, b = (names(found)[index] for index in (0, 1))
    curve = Curve()
    assert colours_of(found, [(f"{a}: x", curve), (f"{a}: y", curve), (f"{b}: x", curve), (f"{b}: y", curve)]) == [0, 2, 1, 3]  # fmt: skip
    assert colours_of(found, [(b, curve)]) == [1]
    assert ">base</span>" in chart("samples/s", [("base", curve)], [0])
