"""Rewrites of ONNX exports and of how a vocabulary is read."""

from __future__ import annotations

import ast

import libcst as cst

from doctor.lint import Call, Problem
from doctor.lint.cst_arguments import with_argument
from doctor.lint.page import Edits, Page
from doctor.lint.rewrites import Rewrite, rewrites
from doctor.model import t


def _export_at(page: Page, line: int) -> tuple[Call, cst.Call] | None:
    for call in page.script.named("torch.onnx.export"):
        node = page.find(call.node, cst.Call) if call.line == line else None
        if node is not None:
            return call, node
    return None


@rewrites("onnx-dynamo-default-dynamic-axes")
def old_exporter(page: Page, item: Problem) -> Rewrite | None:
    """dynamo=False beside dynamic_axes: the exporter that the argument was made for."""
    found = _export_at(page, item.line)
    if found is None or "dynamo" in found[0].keywords or found[0].has_double_star:
        return None
    edits = Edits()
    edits.change(found[1], lambda it: with_argument(it, "dynamo", cst.Name("False")))
    return Rewrite(t("the export gets dynamo=False, the exporter that dynamic_axes belongs to"), edits)


@rewrites("onnx-export-in-train-mode")
def eval_first(page: Page, item: Problem) -> Rewrite | None:
    """model.eval() before the export, and before the outputs that it is compared with."""
    found = _export_at(page, item.line)
    if found is None:
        return None
    export, _ = found
    name = str(item.title.params.get("model", ""))
    first = min(_compared(page, export, name), key=lambda call: call.order, default=export)
    statement = page.statement(page.find(first.node, cst.Call))
    if statement is None or not all(part.isidentifier() for part in name.split(".")):
        return None
    trains_on = export.loops > 0 or any(
        call.order > export.order and call.scope == export.scope for call in page.script.methods("backward")
    )
    risk = t("training goes on after the export: it would need {model}.train() again", model=name) if trains_on else None  # fmt: skip
    edits = Edits()
    edits.before[statement].append(page.new_statement(f"{name}.eval()"))
    return Rewrite(t("{model}.eval() before the export", model=name), edits, risk)


def _compared(page: Page, export: Call, name: str) -> list[Call]:
    """Return the forward passes beside the export, behind the last step of training."""
    here = [call for call in page.script.calls if call.scope == export.scope and call.order < export.order]
    trained = max((call.order for call in here if call.method in ("backward", "step", "train")), default=-1)
    return [call for call in here if call.name == name and call.block == export.block and call.order > trained]  # fmt: skip


@rewrites("vocab-file-splitlines-corruption")
def lines_of_the_file(page: Page, item: Problem) -> Rewrite | None:
    """file.read().splitlines() -> [line.rstrip("\\n") for line in file]."""
    for call in page.script.methods("splitlines"):
        node = page.find(call.node, cst.Call) if call.line == item.line and not call.node.args else None
        file = _file_read(call.node)
        if node is None or call.keywords or file is None or _may_be_bytes(page, file):
            continue
        source = page.expression(file)
        if source is None or any(isinstance(one, ast.Name) and one.id == "line" for one in ast.walk(file)):
            return None
        newline = cst.Call(cst.Attribute(cst.Name("line"), cst.Name("rstrip")), [cst.Arg(page.string("\\n"))])
        made = cst.ListComp(newline, cst.CompFor(cst.Name("line"), source))
        edits = Edits()
        edits.put(node, made)
        return Rewrite(t("the file is read line by line, and only the newline is taken off"), edits)
    return None


def _file_read(node: ast.Call) -> ast.expr | None:
    """Return ``file`` of ``file.read().splitlines()``."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not isinstance(inner, ast.Call) or inner.args or inner.keywords:
        return None
    reads = isinstance(inner.func, ast.Attribute) and inner.func.attr == "read"
    return inner.func.value if isinstance(inner.func, ast.Attribute) and reads else None


def _may_be_bytes(page: Page, file: ast.expr) -> bool:
    """``open(path, "rb")``, here or where the name was opened; a file that was not opened in sight counts too."""
    opened = file if isinstance(file, ast.Call) else _opened(page, file)
    if opened is None or page.script.resolve(opened.func) not in ("open", "io.open", "gzip.open"):
        return True
    named = next((word.value for word in opened.keywords if word.arg == "mode"), None)
    mode = named or next(iter(opened.args[1:2]), None)
    text = mode.value if isinstance(mode, ast.Constant) else "r" if mode is None else "?"
    return not isinstance(text, str) or "b" in text or text == "?"


def _opened(page: Page, file: ast.expr) -> ast.Call | None:
    """Return the call that gave ``file`` its value: ``with open(path) as file``."""
    for node in ast.walk(page.script.tree):
        for item in node.items if isinstance(node, ast.With) else ():
            named = item.optional_vars is not None and ast.unparse(item.optional_vars) == ast.unparse(file)
            if named and isinstance(item.context_expr, ast.Call):
                return item.context_expr
    return None
