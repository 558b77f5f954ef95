"""What is written for machines is what its schema says, and never lets a name from the machine break out."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import jsonschema
import msgspec
import pytest

from doctor.judge import fold_symptoms
from doctor.language import use_language
from doctor.model import Evidence, Facts, Finding, Python, Reading, Report, Snapshot, Unanswered, t
from doctor.render import layout, schema, structured, text
from doctor.render.headline import environment_line
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, wrap

HOSTILE = "evil\x1b[2J[bold]<b>`rm -rf`\n\u202e"


def report() -> Report:
    findings = [
        Finding(id="cause", level="fail", subject=HOSTILE, title=t("{name} is wrong", name=HOSTILE), cause_of=("symptom",),
                advice=t("do `this thing`"), evidence=(Evidence(fact="driver.version", value=HOSTILE),)),
        Finding(id="symptom", level="warn", title=t("it shows")),
        Finding(id="aside", level="note", title=t("by the way")),
    ]  # fmt: skip
    unanswered = (Unanswered(section="gpus", why=t("hung"), checks=("a", "b")),)
    return Report(
        diagnoses=fold_symptoms(findings), unanswered=unanswered, passed=("fine",), crashed=("x: boom",)
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_json_report_is_valid_by_the_schema_that_ships(language: str) -> None:
    use_language(language)
    try:
        tree = json.loads(structured.as_json(report(), Snapshot(), 1))
    finally:
        use_language("en")
    jsonschema.validate(tree, schema.json_schema("report"))
    assert tree["exit_code"] == 1
    assert tree["diagnoses"][0]["finding"]["title"]["text"]


def test_a_snapshot_is_valid_by_the_schema_that_ships() -> None:
    failed: Reading[object] = Reading(status="failed", why=t("no"))
    snapshot = Snapshot(facts=Facts(gpus=failed))  # type: ignore[arg-type]
    jsonschema.validate(json.loads(msgspec.json.encode(snapshot)), schema.json_schema("snapshot"))


def test_sarif_names_each_rule_once_and_keeps_levels() -> None:
    run = json.loads(structured.as_sarif(report()))["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["cause", "symptom", "aside"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_junit_counts_failures_and_errors() -> None:
    suite = ElementTree.fromstring(structured.as_junit(report()))
    assert (suite.get("failures"), suite.get("errors")) == ("2", "2")
    assert len(suite.findall("testcase")) == 1 + 3 + 2


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_name_from_the_machine_reaches_a_terminal_raw(lang: str) -> None:
    use_language(lang)
    try:
        lines = "\n".join(text.report_lines(report(), Snapshot(), 80, colour=False))
        markdown = structured.as_markdown(report(), Snapshot())
    finally:
        use_language("en")
    for shown in (lines, markdown):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "<b>" not in re.sub(r"`[^`]*`", "", markdown)  # inside a code span it is only text


def test_what_could_not_be_looked_at_is_never_shown_as_fine() -> None:
    only = Report(unanswered=(Unanswered(section="gpus", why=t("hung"), checks=("a", "b")),), passed=("x",))
    shown = "\n".join(text.report_lines(only, Snapshot(), 80))
    assert "nothing wrong" not in shown
    assert "could not be read" in shown
    assert "could not look" in text.brief_line(only)


def test_a_command_in_backticks_is_never_broken_so_that_it_can_be_copied() -> None:
    lines = wrap(
        "Run this: `python -m pip install torch==2.6.0 --index-url https://example.org/whl/cu124` and then go on.",
        40,
    )
    assert any(
        "`python -m pip install torch==2.6.0 --index-url https://example.org/whl/cu124`" in line
        for line in lines
    )
    assert all(display_width(line) <= 40 for line in lines if "`" not in line)


def test_chinese_is_wrapped_by_its_width() -> None:
    lines = wrap("驱动太旧，跑不了这个版本的CUDA，请换一个较旧的构建。", 20)
    assert all(display_width(line) <= 22 for line in lines)
    assert not any(line[0] in "，。" for line in lines)
    assert "".join(lines) == "驱动太旧，跑不了这个版本的CUDA，请换一个较旧的构建。"


@pytest.mark.parametrize(
    ("count", "shown"), [(None, "?"), (0, "0 B"), (1536, "2 KB"), (24 << 30, "24.0 GB"), (3 << 40, "3.0 TB")]
)
def test_sizes_are_said_as_people_say_them(count: int | None, shown: str) -> None:
    assert human_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "?"), (3.4, "3 s"), (65, "1 m 05 s"), (7500, "2 h 05 m")]
)
def test_times_are_said_as_people_say_them(seconds: float | None, shown: str) -> None:
    assert human_seconds(seconds) == shown


def test_a_prefix_counts_as_columns() -> None:
    lines = indent("word " * 60, 60, "line 123456: ", "  ")
    assert max(display_width(line) for line in lines) <= 60
    assert len(lines) > 5


def test_an_interpreter_that_cannot_run_is_said_in_the_first_line() -> None:
    python = Python(executable="/venv/bin/python", unread={"executable": t("/gone is not there")})
    line = environment_line(Snapshot(facts=Facts(python=Reading(status="ok", value=python))))
    assert "IT CANNOT RUN: /gone is not there" in line


def test_a_colour_takes_no_columns() -> None:
    assert display_width(layout.paint("问题", "fail", True)) == 4
