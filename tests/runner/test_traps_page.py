"""docs/traps.md names all sixty-four, and every test it names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "traps.md").read_text(encoding="utf-8")
# test_oom.py: the_weights_are_those_... (logits, backward), even_one_by_one_...; test_kill.py
# parallel/test_starting.py: every_sample_is_dealt_once_...
NAMED = re.compile(r"((?:\w+/)?test_\w+\.py): ([^;|]*)")


def named_tests() -> Iterator[tuple[str, str]]:
    """Yield ``(file, beginning of a test's name)``."""
    for file, words in NAMED.findall(PAGE):
        for word in re.sub(r"\([^)]*\)", "", words).split(","):
            name = re.match(r"\s*([a-z]\w{8,})", word)
            if name:
                yield file, name[1].rstrip("_")


def place(file: str) -> Path:
    """Return where a file of the page lies: beside this one where no folder is named."""
    return HERE.parent / file if "/" in file else HERE / file


def test_all_sixty_four_stand_in_their_order_with_what_was_seen() -> None:
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 65))
    assert all(seen.startswith(("yes", "no", "-")) for _, seen in rows)


@pytest.mark.parametrize(("file", "name"), sorted(set(named_tests())))
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    source = place(file).read_text(encoding="utf-8")
    assert re.search(rf"^def test_{name}", source, re.MULTILINE), f"{file} has no test_{name}..."


def test_the_page_names_files_that_are_there() -> None:
    files = set(re.findall(r"(?:\w+/)?test_\w+\.py", PAGE))
    assert len(files) > 8 and all(place(file).is_file() for file in files)
