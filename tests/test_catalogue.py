"""Every sentence is said in both languages, with the same fields, and the compiled catalogue is the parts' own."""

from __future__ import annotations

import pytest

from doctor.language import choose_language, say, use_language
from runner.text import t
from tests import catalogue


def test_every_sentence_has_its_translation_with_the_same_fields() -> None:
    assert catalogue.problems() == []


def test_the_compiled_catalogue_is_what_the_parts_make() -> None:
    assert catalogue.COMPILED.read_bytes() == catalogue.compiled(), "run: python -m tests.catalogue --write"


def test_a_sentence_is_said_in_chinese_with_its_fields() -> None:
    use_language("zh")
    try:
        assert say(t("driver {version}", version="550.90")) == "驱动 550.90"
    finally:
        use_language("en")


def test_an_unmarked_literal_is_refused() -> None:
    with pytest.raises(ValueError, match="one literal string"):
        list(catalogue.msgids_in("t(f'{a} b')", "x.py"))


@pytest.mark.parametrize(
    ("option", "environ", "saved", "expected"),
    [
        pytest.param("zh", {"LANG": "en_US.UTF-8"}, None, "zh", id="the option wins"),
        pytest.param(None, {"DOCTOR_LANG": "zh"}, "en", "zh", id="then DOCTOR_LANG"),
        pytest.param(None, {"LANG": "en_US.UTF-8"}, "zh", "zh", id="then what was saved"),
        pytest.param(None, {"LANG": "zh_CN.UTF-8"}, None, "zh", id="then the locale"),
        pytest.param(None, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, None, "en", id="LC_ALL over LANG"),
        pytest.param(None, {}, None, "en", id="nothing set"),
    ],
)
def test_the_language_is_chosen_in_order(
    option: str | None, environ: dict[str, str], saved: str | None, expected: str
) -> None:
    assert choose_language(option, environ, saved) == expected
