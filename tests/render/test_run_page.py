"""The page of a run: whole in itself, harmless, and honest about what it could not read."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from typing import Any

import pytest

from doctor.render.curve_svg import POINTS, curve_svg
from doctor.render.run_page import as_html, as_json, as_markdown
from doctor.run_page import Page, mean_frames
from runner.events import RunEvent
from runner.state import Curve, fold
from runner.text import t

EVIL = "<img src=x onerror=alert(1)>\x1b[2J|"


def page(**error: Any) -> Page:
    kinds: list[tuple[str, int, dict[str, Any]]] = [
        ("run-started", 0, {"steps_total": 3, "device": "cpu"}),
        (
            "step",
            1,
            {"loss": 2.0, "lr": 0.1, "samples": 4, "seconds": 1.0, "split": {"data": 1.0, "forward": 3.0}},
        ),
        ("step", 2, {"loss": "nan", "lr": 0.1, "samples": 4, "seconds": 1.0}),
        ("evaluation", 2, {"accuracy": 0.5, EVIL: 1.0}),
        ("note", 2, {"level": "warn", "text": EVIL}),
        ("run-finished", 2, {"outcome": "failed", "error": EVIL, "metrics": {"accuracy": 0.5}}),
    ]
    events = [
        RunEvent(seq=n, t=1000.0 + n, source="trainer-0", kind=k, step=s, data=d)
        for n, (k, s, d) in enumerate(kinds)
    ]
    unread = {"plan.json": t("it was changed"), "snapshot.json": t("it is gone")}
    return Page(name=f"run {EVIL}", status="failed", state=fold(events), now=1006.0, unread=unread)


class Tags(HTMLParser):
    """Collects tags and checks that each that opens is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_whole_and_nothing_in_it_acts() -> None:
    html = as_html(page())
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "svg" in tags.seen
    assert not {"img", "script", "link", "iframe"} & set(tags.seen)
    assert "\x1b" not in html
    assert "src=" not in html.replace("&lt;img src=", "")


def test_a_part_that_could_not_be_read_is_named_with_its_reason() -> None:
    for text in (as_html(page()), as_markdown(page())):
        assert "it was changed" in text
        assert "snapshot.json: it is gone" in text


def test_a_nan_survives_into_every_form() -> None:
    assert json.loads(as_json(page()))["curves"]["loss"]["training"]["value"] == [2.0, "nan"]
    assert ">nan</text>" in as_html(page())


def test_markdown_tables_keep_their_columns() -> None:
    lines = as_markdown(page()).splitlines()
    begin = lines.index("## Evaluations")
    table = [line.replace("\\|", "").count("|") for line in lines[begin + 2 : begin + 5]]
    assert table == [4, 4, 4], "a step, an accuracy and the one with the evil name"


def test_the_time_split_is_in_shares() -> None:
    assert "| forward | 3 s | 75.0 % |" in as_markdown(page())


def test_a_long_curve_is_thinned_and_keeps_its_ends_and_its_nans() -> None:
    curve = Curve(limit=5000)
    for step in range(4001):
        curve.add(step, math.nan if step == 1234 else float(step))
    svg = curve_svg([("loss", curve)])
    assert svg.count(",") < 2.2 * POINTS
    assert ">nan</text>" in svg
    assert ">4000</text>" in svg


def test_hot_functions_are_means_over_the_run_and_the_trainers_own() -> None:
    def window(*frames: tuple[str, float, str], samples: int = 50) -> RunEvent:
        listed = [
            {"function": f, "file": "a.py", "line": 1, "self_share": s, "total_share": s, "process": p}
            for f, s, p in frames
        ]
        return RunEvent(
            seq=0, t=0.0, source="sampler", kind="sample-stacks", data={"samples": samples, "frames": listed}
        )

    events = [
        window(("step", 0.8, "trainer"), ("load", 0.2, "trainer")),
        window(("load", 0.6, "trainer"), ("fetch", 1.0, "worker 12")),
        window(samples=0),
    ]
    means = [(frame["function"], frame["self_share"]) for frame in mean_frames(events)]
    assert [name for name, _ in means] == ["step", "load"]
    assert [round(share, 6) for _, share in means] == [0.4, 0.4]


def long_page(evaluations: int) -> Page:
    """A run with as many evaluations, notes and checkpoints, as one of a million steps has."""
    events = [
        RunEvent(
            seq=0,
            t=1.0,
            source="trainer-0",
            kind="run-started",
            step=0,
            data={"steps_total": 100 * evaluations},
        )
    ]
    for n in range(1, evaluations + 1):
        for kind, data in (
            ("step", {"loss": 1 / n, "lr": 0.1, "grad_norm": 1.0, "samples": 8, "seconds": 1.0}),
            ("evaluation", {"loss": 1 / n, "accuracy": 0.5}),
            ("checkpoint", {"path": f"checkpoints/step-{n:08d}", "bytes": 10}),
        ):
            events.append(RunEvent(seq=n, t=1.0 + n, source="trainer-0", kind=kind, step=100 * n, data=data))
    return Page(
        name="long",
        status="running",
        state=fold(events),
        now=5.0,
        unread={"plan.json": t("x"), "snapshot.json": t("y")},
    )


@pytest.mark.no_cover
def test_a_page_of_a_million_steps_is_small_and_says_what_it_leaves_out() -> None:
    few, many = long_page(300), long_page(10_000)
    for form in (as_html, as_markdown):
        assert len(form(many)) < 1.3 * len(form(few)) < 200_000
        assert "9800 more, all in the folder events of the run" in form(many)


def test_markdown_says_what_the_charts_show() -> None:
    text = as_markdown(long_page(50))
    assert "| loss: training | 1 | 0.02 | 0.02 | 1 |" in text and "| learning rate | 0.1 |" in text
    assert "training loss | 1 → 0.02 |" in text and "evaluation loss | 0.02" in text


def test_a_flat_curve_has_one_label_in_the_middle() -> None:
    curve = Curve()
    for step in (1, 2):
        curve.add(step, 0.5)
    svg = curve_svg([("accuracy", curve)])
    assert svg.count(">0.5<") == 1


def test_the_style_fetches_nothing_and_knows_dark_paper_and_print() -> None:
    html = as_html(page())
    assert "url(" not in html and "@import" not in html and "http" not in html
    assert "prefers-color-scheme:dark" in html and "@media print" in html
