"""Every finding has its page, in both languages, and docs/findings is made of them."""

from __future__ import annotations

from tests import pages


def test_every_finding_has_a_page_in_both_languages() -> None:
    assert pages.problems() == []


def test_docs_are_what_the_pages_make() -> None:
    wanted = pages.files()
    have = {
        path: path.read_text("utf-8") for path in (*pages.FOLDER.glob("*.md"), *pages.FOLDER.glob("zh/*.md"))
    }
    assert have == wanted, "run: python -m tests.pages --write"
