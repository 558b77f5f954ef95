"""Every finding has its page, in both languages, and docs/findings is made of them."""

from __future__ import annotations

import pytest

from doctor.language import use_language
from doctor.pages import all_pages, page
from tests import pages


def test_every_finding_has_a_page_in_both_languages() -> None:
    assert pages.problems() == []


def test_docs_are_what_the_pages_make() -> None:
    wanted = pages.files()
    have = {
        path: path.read_text("utf-8") for path in (*pages.FOLDER.glob("*.md"), *pages.FOLDER.glob("zh/*.md"))
    }
    assert have == wanted, "run: python -m tests.pages --write"


@pytest.mark.parametrize("finding_id", sorted(all_pages()))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_has_all_its_parts(finding_id: str, language: str) -> None:
    """What it means, how one meets it (or that no error tells of it), what to do, what not to do."""
    fields = all_pages()[finding_id][language]
    assert fields["means"] and fields["do"] and fields["not"]
    use_language(language)
    try:
        text = page(finding_id, language) or ""
        assert text.count("\n## ") == 3
    finally:
        use_language("en")
