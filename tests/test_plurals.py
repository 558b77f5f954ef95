"""One of a thing is said in the singular: ``{count} {count:finding|findings}`` in English, the number alone in Chinese."""

from __future__ import annotations

import re

import pytest

from runner.strings import fields_of, fill
from runner.text import t
from tests import catalogue


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 findings in 2 files"),
        (1, "1 finding in 2 files"),
        ("1", "1 finding in 2 files"),
        (11, "11 findings in 2 files"),
    ],
)
def test_the_word_follows_its_number(count: int | str, expected: str) -> None:
    words = t("{count} {count:finding|findings} in {files} files", count=count, files=2)
    assert str(words) == expected


def test_a_chosen_word_is_a_field_and_a_missing_number_leaves_it_as_it_stands() -> None:
    assert fields_of("{count} {count:GPU was|GPUs were} rented") == ["count", "count"]
    assert fill("{n:a|b} {m}", {"m": 1}) == "{n:a|b} 1"
    assert fill("{a|b} {:x|y} {json: 1}", {"a": 1}) == "{a|b} {:x|y} {json: 1}"


_COUNTED = re.compile(
    r"(?<![\w.{:])1 (?:(?:rented|loader|uncorrectable|memory|corrected|uncorrected|PCIe|conda|more) )*"
    r"(?:checks|findings|packages|GPUs|CPUs|steps|variables|processes|errors|folders|requirements|checkpoints|losses"
    r"|samples|rows|cores|differences|minutes)\b"
)


@pytest.mark.no_cover
def test_no_sentence_says_one_of_many() -> None:
    """Each sentence with every number a one; where a number is of another thing (1 of 8 GPUs), the word stands."""
    wrong = [
        place
        for msgid, place in catalogue.extracted().items()
        if _COUNTED.search(fill(msgid, dict.fromkeys(fields_of(msgid), 1)))
        and not re.search(r"of the \{\w+\}|of \{\w+\}|(only|at most) the first|samples/s", msgid)
    ]
    assert wrong == []
