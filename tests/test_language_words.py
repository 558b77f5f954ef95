"""Durations and names inside a sentence are said in the reader's language too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doctor.language import say, use_language
from doctor.render.layout import human_seconds
from doctor.render.verdict_text import evidence_lines
from runner.text import t
from runner.verdict import verdict_of
from tests.runner.test_verdict import GPU_BUSY, STEP, told


@pytest.fixture
def _chinese() -> Iterator[None]:
    use_language("zh")
    yield
    use_language("en")


SILENT = t("silent for {seconds!d}: saving", seconds=4312)


def test_a_long_silence_is_no_number_of_seconds() -> None:
    assert say(SILENT) == str(SILENT) == "silent for 1 h 11 m: saving"


@pytest.mark.usefixtures("_chinese")
def test_durations_have_chinese_units() -> None:
    assert say(SILENT) == "已 1 小时 11 分没有动静：在保存"
    assert [human_seconds(seconds) for seconds in (4, 65, 3700)] == ["4 秒", "1 分 05 秒", "1 小时 01 分"]


@pytest.mark.usefixtures("_chinese")
def test_what_was_seen_names_its_parts_in_chinese() -> None:
    state = told(split={**STEP, "copy": 0.03}, gpu=GPU_BUSY, phases={"forward": 0.4, "other": 0.6})
    seen = " · ".join(evidence_lines(verdict_of(state, "running", 60.0)))
    assert "反向 50 %" in seen and "拷到 GPU 3 %" in seen and "其他 60 %" in seen
    assert not {"backward", "forward", "copy", "other"} & set(seen.split())


@pytest.mark.usefixtures("_chinese")
def test_a_name_that_is_none_of_ours_stays_as_it_is() -> None:
    words = say(t("step clock, {steps} {steps:step|steps}: {parts!t}", steps=3, parts="warp 9 %, data 1 %"))
    assert words == "每步计时（3 步）：warp 9 %, 数据 1 %"
