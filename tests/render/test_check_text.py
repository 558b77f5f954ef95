"""The text of ``doctor check`` as a person in a hurry reads it: every recorded machine, both languages, 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doctor.judge import judge
from doctor.language import say, use_language
from doctor.machine import load_snapshot
from doctor.model import SECTIONS, Driver, Facts, Gpu, Gpus, Reading, Report, Snapshot, ok
from doctor.render.headline import machine_line
from doctor.render.layout import display_width, wrap
from doctor.render.section_names import section_name
from doctor.render.text import report_lines

MACHINES = sorted((Path(__file__).parents[1] / "machines").glob("*.json"))


def shown(path: Path, language: str) -> tuple[list[str], Report, Snapshot]:
    snapshot = load_snapshot(path)
    report = judge(snapshot)
    use_language(language)
    try:
        return list(report_lines(report, snapshot, 80)), report, snapshot
    finally:
        use_language("en")


# A command alone on its line may be longer: cut by us, its second half would be pasted as a command of its own.
TO_BE_COPIED = re.compile(
    r" +(?:→ )?(?:(?:/\S+/)?python\S* -m pip|export [A-Z_]+=|mkdir -p|mv /|unset [A-Z_]+)[ -~]*[，。；]?$"
)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_a_machine_reads_well_at_80_columns(path: Path, language: str) -> None:
    lines, report, _ = shown(path, language)
    words = "\n".join(lines)
    too_wide = [
        line
        for line in lines
        if display_width(line) > 80
        and "`" not in line
        and " " in line.strip()
        and not TO_BE_COPIED.match(line)
    ]
    assert too_wide == []
    assert "None" not in words, "a value that nobody read is no evidence"
    assert not re.search(r"\{[a-z_]+[!:}]", words), "a field was not filled"
    if language == "zh":
        assert not re.search(r"\b(not installed|the GPU|memory error|no answer)\b", words)
    loud = [one.finding for one in report.diagnoses if one.finding.level in ("fail", "warn")]
    if loud:  # the worst stands first, right under the two lines of the head
        head = next(number for number, line in enumerate(lines) if not line)
        use_language(language)
        try:
            first = re.sub(r"\W", "", say(loud[0].title))[:24]
        finally:
            use_language("en")
        assert first in re.sub(r"\W", "", "".join(lines[head + 1 : head + 5]))


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_the_last_line_counts_what_is_shown(path: Path) -> None:
    lines, report, _ = shown(path, "en")
    heads = [one.finding.level for one in report.diagnoses]
    counted = re.findall(r"(\d+) (FAIL|WARN|note)", " ".join(lines[-2:]))
    wanted = [("FAIL", heads.count("fail")), ("WARN", heads.count("warn")), ("note", heads.count("note"))]
    assert counted == [(str(count), word) for word, count in wanted if count]


def test_every_section_has_a_name_in_both_languages() -> None:
    for language in ("en", "zh"):
        use_language(language)
        try:
            names = {section: section_name(section) for section in SECTIONS}
        finally:
            use_language("en")
        assert not [section for section, name in names.items() if "_" in name]
        assert len(set(names.values())) == len(names)


def test_cards_that_a_finding_explains_are_not_explained_again() -> None:
    path = next(one for one in MACHINES if one.stem == "driver-replaced-underneath")
    lines, _, _ = shown(path, "en")
    below = "\n".join(lines[lines.index("") :])
    assert "because of the above, GPUs could not be read" in below
    assert "Driver/library version mismatch" not in below


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("一二三四，五", 8, ["一二三", "四，五"]),
        ("一二三四）。五", 8, ["一二三", "四）。五"]),
        ("aa bb cc", 5, ["aa bb", "cc"]),
        ("一，", 2, ["一，"]),
        ("一二三（四五", 8, ["一二三", "（四五"]),
        ("一二三（，五", 8, ["一二三", "（，五"]),
        ("（（一", 2, ["（（一"]),
        ("x `a long command` y", 6, ["x", "`a long command`", "y"]),
    ],
)
def test_a_sign_that_may_not_begin_or_end_a_line_takes_its_neighbour_along(
    text: str, width: int, lines: list[str]
) -> None:
    assert wrap(text, width) == lines


def test_the_same_advice_for_eight_cards_is_given_once() -> None:
    lost = tuple(Gpu(index=index, error="GPU is lost", error_code=15) for index in range(8))
    snapshot = Snapshot(facts=Facts(gpus=ok(Gpus(items=lost))))
    words = "\n".join(report_lines(judge(snapshot), snapshot, 80))
    assert words.count("Stop using this card") == 1
    assert words.count("the same as above") == 7
    assert all(f"GPU {index} does not answer" in words for index in range(8))


@pytest.mark.parametrize(
    ("module", "words"), [(None, "driver 550.54.15, not loaded"), ("550.54.15", "driver 550.54.15")]
)
def test_a_driver_that_is_only_files_is_not_called_the_driver(module: str | None, words: str) -> None:
    driver = Driver(version="550.54.15", nvml_error=9, kernel_module_version=module)
    snapshot = Snapshot(facts=Facts(driver=ok(driver), gpus=Reading(status="absent")))
    assert machine_line(snapshot).endswith(words)
