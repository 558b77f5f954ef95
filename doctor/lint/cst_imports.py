"""Imported names moved from one module to another, merged with an import that is there already. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

from doctor.lint.page import Edits, Page


def dotted(name: str) -> cst.Attribute | cst.Name:
    """Return ``a.b.c`` as a node."""
    head, _, tail = name.rpartition(".")
    return cst.Attribute(value=dotted(head), attr=cst.Name(tail)) if head else cst.Name(tail)


def imports_of(page: Page, module: str) -> list[cst.ImportFrom]:
    """Return the ``from module import ...`` of a page, first line first."""
    found = [one for one in page.every(cst.ImportFrom) if _module(one) == module and not one.relative]
    return sorted(found, key=page.line)


def _module(node: cst.ImportFrom) -> str:
    return (get_full_name_for_node(node.module) or "") if node.module else ""


def move_names(page: Page, edits: Edits, old: str, names: Collection[str], new: str, first_use: int) -> bool:
    """Have ``names`` imported from ``new`` in place of ``old``; return False where that cannot be done cleanly.

    ``first_use`` is the line of their first use: an import of ``new`` that stands behind it is not merged with.
    """
    for node in imports_of(page, old):
        if isinstance(node.names, cst.ImportStar):
            return False
        moving = [one for one in node.names if one.name.value in names]
        if moving and not _move(page, edits, node, moving, new, first_use):
            return False
    return True


def _move(
    page: Page, edits: Edits, node: cst.ImportFrom, moving: list[cst.ImportAlias], new: str, first_use: int
) -> bool:
    statement = page.statement(node)
    if statement is None or isinstance(node.names, cst.ImportStar):
        return False
    target = _target(page, statement, new, first_use)
    whole = len(moving) == len(node.names)
    if whole and (target is None or _has_comment(statement)):
        edits.change(node, lambda it: it.with_changes(module=dotted(new)))
        return True
    if whole:
        edits.removed.add(statement)
    else:
        edits.change(node, lambda it: it.with_changes(names=_without(it.names, moving)))
    if target is not None:
        edits.change(target, lambda it: it.with_changes(names=_with(it.names, moving)))
    else:
        text = ", ".join(page.module.code_for_node(_plain(one)) for one in moving)
        edits.after[statement].append(page.new_statement(f"from {new} import {text}"))
    return True


def _plain(alias: cst.ImportAlias) -> cst.ImportAlias:
    return alias.with_changes(comma=cst.MaybeSentinel.DEFAULT)


def _has_comment(statement: cst.SimpleStatementLine) -> bool:
    return statement.trailing_whitespace.comment is not None or any(one.comment for one in statement.leading_lines)  # fmt: skip


def _target(
    page: Page, statement: cst.SimpleStatementLine, module: str, first_use: int
) -> cst.ImportFrom | None:
    """Return the import of ``module`` that can take more names."""
    for one in imports_of(page, module):
        line = page.statement(one)
        if line is None or isinstance(one.names, cst.ImportStar) or page.line(one) >= first_use:
            continue
        if page.stands_in_module(line) and page.stands_in_module(statement):
            return one
    return None


def _without(names: Sequence[cst.ImportAlias], gone: list[cst.ImportAlias]) -> list[cst.ImportAlias]:
    texts = {_key(one) for one in gone}
    kept = [one for one in names if _key(one) not in texts]
    if _key(names[-1]) in texts:
        comma = kept[-1].comma
        commented = (
            isinstance(comma, cst.Comma)
            and isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace)
            and comma.whitespace_after.first_line.comment is not None
        )
        kept[-1] = kept[-1] if commented else kept[-1].with_changes(comma=names[-1].comma)
    return kept


def _with(names: Sequence[cst.ImportAlias], more: list[cst.ImportAlias]) -> list[cst.ImportAlias]:
    present = {_key(one) for one in names}
    found = list(names)
    for one in more:
        if _key(one) not in present:
            last = found[-1]
            between = found[0].comma if len(found) > 1 else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))  # fmt: skip
            found = [*found[:-1], last.with_changes(comma=between), one.with_changes(comma=last.comma)]
    return found


def _key(alias: cst.ImportAlias) -> tuple[str, str]:
    return alias.evaluated_name, alias.evaluated_alias or ""
