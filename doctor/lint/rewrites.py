"""Rewrites of what lint found, each held against the rules before it is offered: its finding gone, nothing worse come. Pure.

A rewrite is one function of a :class:`Page` and a :class:`Problem`. Safe ones keep what the script means (or mend what
cannot run as it stands); the others say what they risk and are asked for one by one.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doctor.lint import Installed, Problem, problems_in, versions_of
from doctor.lint.reader import parse
from doctor.lint.script import Script
from doctor.model import Fix, Snapshot, Text, WriteFile, t

if TYPE_CHECKING:
    from doctor.lint.page import Edits, Page

MODULES = ("rewrite_arguments", "rewrite_names", "rewrite_loops", "rewrite_export", "rewrite_start")
MOST = 500
"""A script with more rewrites than this is left at that many."""

Key = tuple[str, str, str, int]


class NotRewritable(Exception):  # noqa: N818 - it is what it says
    """The script is read by the rules, but not by libcst (or by neither)."""


@dataclass(frozen=True)
class Rewrite:
    """What one rewrite would do."""

    title: Text
    edits: Edits
    risk: Text | None = None
    """Why it may not be what the person wants; None: it is safe."""


@dataclass(frozen=True)
class Proposal:
    """A rewrite that holds: the script before and after it."""

    id: str
    """The finding that it mends."""
    line: int
    title: Text
    risk: Text | None
    before: str
    after: str

    @property
    def safe(self) -> bool:
        return self.risk is None


@dataclass(frozen=True)
class Rewritten:
    """A script with the rewrites that were wanted, and those that were not."""

    source: str
    made: tuple[Proposal, ...] = ()
    left: tuple[Proposal, ...] = ()


RewriteFunction = Callable[["Page", Problem], "Rewrite | None"]
_REWRITES: dict[str, list[RewriteFunction]] = {}


def rewrites(*finding_ids: str) -> Callable[[RewriteFunction], RewriteFunction]:
    """Register a rewrite for these findings."""

    def register(function: RewriteFunction) -> RewriteFunction:
        for one in finding_ids:
            _REWRITES.setdefault(one, []).append(function)
        return function

    return register


def has_libcst() -> bool:
    """Return whether the extra that rewriting needs is installed."""
    return importlib.util.find_spec("libcst") is not None


def rewrite_source(
    source: str,
    wanted: Callable[[Proposal], bool],
    versions: Mapping[str, str] | None = None,
    path: str = "<script>",
    snapshot: Snapshot | None = None,
) -> Rewritten:
    """Rewrite ``source`` as far as ``wanted`` says, one proposal after the other, each on top of those before.

    Raises:
        NotRewritable: libcst or Python cannot read it.
        ImportError: libcst is not installed.
    """
    installed = Installed(versions_of(snapshot) if versions is None else versions, snapshot)
    made: list[Proposal] = []
    left: dict[Key, Proposal] = {}
    done: set[Key] = set()
    while len(made) < MOST:
        for key, proposal in _proposals(source, path, installed, done):
            done.add(key)
            if proposal is not None and wanted(proposal):
                made.append(proposal)
                source = proposal.after
                break
            if proposal is not None:
                left[key] = proposal
        else:
            break
    return Rewritten(source, tuple(made), tuple(left.values()))


def _proposals(
    source: str, path: str, installed: Installed, done: set[Key]
) -> Iterator[tuple[Key, Proposal | None]]:
    """Yield what could be done about each finding not in ``done``; None where nothing holds."""
    try:
        script = parse(source, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NotRewritable(str(error)) from None
    problems = problems_in(script, installed)
    open_items = [(key, item) for key, item in _keyed(script, problems) if key not in done]
    page = _page(source, script) if open_items else None
    for key, item in open_items:
        assert page is not None
        yield key, _proposal(page, source, item, problems, installed)


def _keyed(script: Script, problems: list[Problem]) -> Iterator[tuple[Key, Problem]]:
    """Yield what a rewrite is registered for, with what names it while the lines move."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for item in problems:
        text = script.lines[item.line - 1].strip() if item.line <= len(script.lines) else ""
        seen[item.id, item.about, text] += 1
        if item.id in all_rewrites():
            yield (item.id, item.about, text, seen[item.id, item.about, text]), item


def _page(source: str, script: Script) -> Page:
    import libcst

    from doctor.lint.page import Page

    try:
        return Page(source, script)
    except (RecursionError, libcst.ParserSyntaxError) as error:
        raise NotRewritable(str(error).partition("\n")[0]) from None


def _proposal(
    page: Page, source: str, item: Problem, problems: list[Problem], installed: Installed
) -> Proposal | None:
    for function in all_rewrites().get(item.id, ()):
        found = function(page, item)
        if found is None:
            continue
        after = page.applied(found.edits)
        if _holds(after, page.script.path, item, problems, installed):
            return Proposal(item.id, item.line, found.title, found.risk, source, after)
    return None


def _holds(after: str, path: str, item: Problem, problems: list[Problem], installed: Installed) -> bool:
    """Return whether a script parses, has fewer of what was to be mended, and fails in nothing new."""
    try:
        now = problems_in(parse(after, path), installed)
    except (SyntaxError, ValueError, RecursionError):
        return False

    def count(found: list[Problem]) -> Counter[tuple[str, str]]:
        return Counter((one.id, one.about) for one in found if one.level == "fail" or one.id == item.id)

    there, left = count(problems), count(now)
    return left[item.id, item.about] < there[item.id, item.about] and not (left - there)


def as_fix(texts: Mapping[str, str]) -> Fix:
    """Return the change that writes these files: absolute path (odd bytes escaped) -> text."""
    steps = tuple(WriteFile(path=path, content=text) for path, text in texts.items())
    return Fix(id="lint", title=t("scripts rewritten by lint"), steps=steps, subject=", ".join(texts))


def all_rewrites() -> dict[str, list[RewriteFunction]]:
    """Return the rewrites by the finding they mend."""
    for module in MODULES:
        importlib.import_module(f"doctor.lint.{module}")
    return _REWRITES
