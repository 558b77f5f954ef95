"""What each finding means, how people meet it, what to do and what not to: TOML beside this file, in both languages.

One table an id, one an language::

    ["shm-too-small".en]
    means = "..."                     # a paragraph
    met = ["RuntimeError: ..."]       # error texts as people see them (the same in both languages; kept under .en)
    do = ["...", "..."]               # steps, commands in backticks; "AutoDL: ..." where a platform differs
    not = ["..."]                     # what does not help, or harms

``docs/findings/`` is made of this by ``python -m tests.pages --write``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from doctor.language import say

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent


@cache
def all_pages() -> dict[str, dict[str, Any]]:
    """Return id -> language -> fields, over every file of this folder.

    Raises:
        ValueError: two files have a page of the same id.
    """
    pages: dict[str, dict[str, Any]] = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for finding_id, page in tomllib.loads(path.read_text("utf-8")).items():
            if finding_id in pages:
                raise ValueError(f"{path.name}: {finding_id} has a page already")
            pages[finding_id] = page
    return pages


def page(finding_id: str, language: str) -> str | None:
    """Return the page as Markdown in ``language`` (English where that is missing); None when there is none."""
    pages = all_pages().get(finding_id)
    if pages is None:
        return None
    return "\n".join(_lines(finding_id, pages.get(language, pages["en"]), pages["en"].get("met", [])))


def rule_of(finding_id: str, language: str) -> str:
    """Return the paragraph that says when the finding is given; empty where there is no page."""
    fields = all_pages().get(finding_id, {})
    return str(fields.get(language, fields.get("en", {})).get("means", "")).strip()


def proof_of(finding_id: str, language: str) -> str:
    """Return the step by which a person proves that it is mended; empty where the page has none."""
    fields = all_pages().get(finding_id, {})
    steps = fields.get(language, fields.get("en", {})).get("do", ())
    return next((step for step in steps if step.startswith(("Prove it", "验证"))), "")


def _lines(finding_id: str, fields: dict[str, Any], met: list[str]) -> Iterator[str]:
    yield f"# {finding_id}"
    yield ""
    yield str(fields["means"]).strip()
    yield f"\n## {say('How you meet it')}\n"
    yield from (f"    {line}" for text in met for line in str(text).splitlines())
    if not met:
        yield say("There is no error text: nothing breaks off by itself, which is why it is said here.")
    for heading, key in ((say("What to do"), "do"), (say("What not to do"), "not")):
        if fields.get(key):
            yield f"\n## {heading}\n"
            yield from (f"- {step}" for step in fields[key])
