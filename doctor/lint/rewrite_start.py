"""Rewrites of a script's first lines: what must stand before the first import of torch."""

from __future__ import annotations

import ast

import libcst as cst

from doctor.lint import Problem
from doctor.lint.page import Edits, Page
from doctor.lint.rewrites import Rewrite, rewrites
from doctor.lint.visible_devices import BRING_TORCH
from doctor.model import t


@rewrites("cuda-visible-devices-set-late")
def devices_first(page: Page, item: Problem) -> Rewrite | None:
    """os.environ["CUDA_VISIBLE_DEVICES"] = "..." moved above the first import that brings torch in."""
    moved = next((node for node in page.script.tree.body if node.lineno == item.line), None)
    if not isinstance(moved, ast.Assign) or not isinstance(moved.value, ast.Constant):
        return None  # what it is set to is known only where it stands
    statement = page.statement(page.find(moved, cst.Assign))
    first = next((node for node in page.script.tree.body if _brings_torch(node)), None)
    target = page.statement(page.find(first, cst.Import) or page.find(first, cst.ImportFrom))
    if statement is None or target is None or first is None or first.lineno >= item.line:
        return None
    edits = Edits()
    if not any(_brings_os(node) and node.lineno < first.lineno for node in page.script.tree.body):
        if page.script.imports.get("os") != "os":
            return None
        edits.before[target].append(page.new_statement("import os"))
    edits.before[target].append(statement.with_changes(leading_lines=_comments(statement)))
    edits.removed.add(statement)
    return Rewrite(t("CUDA_VISIBLE_DEVICES is set before the first import of torch"), edits)


def _comments(statement: cst.SimpleStatementLine) -> list[cst.EmptyLine]:
    return [line for line in statement.leading_lines if line.comment is not None]


def _brings_torch(node: ast.stmt) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module]
    return any(name.partition(".")[0] in BRING_TORCH for name in names)


def _brings_os(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and any(alias.name == "os" and alias.asname is None for alias in node.names)  # fmt: skip
