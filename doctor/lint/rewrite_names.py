"""Rewrites of names that moved: AdamW, torch.cuda.amp, NumPy's old aliases."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import libcst as cst

from doctor.lint import Call, Problem
from doctor.lint.cst_arguments import index_of, with_argument, with_first, without_argument
from doctor.lint.cst_imports import dotted, imports_of, move_names
from doctor.lint.page import Edits, Page
from doctor.lint.rewrites import Rewrite, rewrites
from doctor.model import Text, t

_ADAMW = ("transformers.AdamW", "transformers.optimization.AdamW")
_AMP = ("torch.cuda.amp.autocast", "torch.cuda.amp.GradScaler")


def uses(page: Page, *names: str) -> Iterator[ast.Name | ast.Attribute]:
    """Yield where one of the dotted names is read, outside of imports."""
    for node in ast.walk(page.script.tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and page.script.resolve(node) in names:
            yield node


def _first_line(page: Page, *names: str) -> int:
    return min((node.lineno for node in uses(page, *names)), default=len(page.script.lines) + 1)


def _uncalled(page: Page, names: tuple[str, ...]) -> list[cst.CSTNode]:
    """Return where a name is used but not called: handed on, compared, tested."""
    called = {id(call.node.func) for call in page.script.calls}
    found = [page.expression(node) for node in uses(page, *names) if id(node) not in called]
    return [node for node in found if node is None or not isinstance(page.parents.get(node), cst.Annotation)]  # type: ignore[misc]


@rewrites("removed-import")
def adamw_of_torch(page: Page, item: Problem) -> Rewrite | None:
    """transformers.AdamW -> torch.optim.AdamW, with the defaults that transformers' own had."""
    if item.about not in _ADAMW:
        return None
    edits, risk = Edits(), t("torch.optim.AdamW has other defaults (eps, weight_decay)") if _uncalled(page, _ADAMW) else None  # fmt: skip
    for name in _ADAMW:
        if not move_names(page, edits, name.rpartition(".")[0], ("AdamW",), "torch.optim", _first_line(page, *_ADAMW)):  # fmt: skip
            return None
    for call in page.script.named(*_ADAMW):
        node = page.find(call.node, cst.Call)
        if node is None or not _adamw_call(edits, call, node):
            return None
        if any(word.arg == "correct_bias" and not _is_true(word.value) for word in call.node.keywords):
            risk = t(
                "torch.optim.AdamW always corrects the bias: the first steps differ from correct_bias=False"
            )
        if isinstance(call.node.func, ast.Attribute):
            edits.put(node.func, dotted("torch.optim.AdamW"))
            _need_torch(page, edits)
    return Rewrite(t("AdamW comes from torch.optim"), edits, risk)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _adamw_call(edits: Edits, call: Call, node: cst.Call) -> bool:
    """Keep the meaning: eps and weight_decay of transformers' AdamW where the call leaves them open."""
    plain = len(call.node.args)
    if plain > 5 or call.has_double_star or any(isinstance(one, ast.Starred) for one in call.node.args):
        return False
    for gone in ("correct_bias", "no_deprecation_warning"):
        if index_of(node, gone) is not None:
            edits.change(node, lambda it, gone=gone: without_argument(it, gone))  # type: ignore[misc]
    for place, name, value in ((3, "eps", "1e-6"), (4, "weight_decay", "0.0")):
        if plain <= place and name not in call.keywords:
            edits.change(node, lambda it, name=name, value=value: with_argument(it, name, cst.Float(value)))  # type: ignore[misc]
    return True


def _need_torch(page: Page, edits: Edits) -> None:
    """Import torch beside transformers where the script does not have the name yet."""
    if page.script.imports.get("torch") == "torch" or edits.after:
        return
    found = sorted(page.every(cst.Import), key=page.line)
    statement = next((line for one in found if (line := page.statement(one)) is not None), None)
    if statement is not None:
        edits.after[statement].append(page.new_statement("import torch"))


@rewrites("deprecated-api")
def amp_by_device(page: Page, item: Problem) -> Rewrite | None:
    """torch.cuda.amp.autocast() -> torch.autocast("cuda"), and the scaler likewise."""
    if item.about not in _AMP or _uncalled(page, _AMP):
        return None
    edits = Edits()
    if not _move_amp(page, edits):
        return None
    for call in page.script.named(*_AMP):
        node = page.find(call.node, cst.Call)
        if node is None or any(isinstance(one, ast.Starred) for one in call.node.args):
            return None
        autocast = call.method == "autocast"
        names = ("enabled", "dtype", "cache_enabled") if autocast else ()
        edits.change(node, lambda it, names=names: with_first(it, page.string("cuda"), names))  # type: ignore[misc]
        if _is_written_out(call.node.func):
            edits.put(node.func, dotted("torch.autocast" if autocast else "torch.amp.GradScaler"))
    title: Text = t("mixed precision is asked for by device: {new}", new='torch.autocast("cuda"), torch.amp.GradScaler("cuda")')  # fmt: skip
    return Rewrite(title, edits)


def _is_written_out(node: ast.expr) -> bool:
    """``torch.cuda.amp.autocast``."""
    return ast.unparse(node) in _AMP


def _move_amp(page: Page, edits: Edits) -> bool:
    """Have the names, or the module ``amp`` itself, imported from torch.amp; False where more than these two is used of it."""
    first = _first_line(page, *_AMP)
    if not move_names(page, edits, "torch.cuda.amp", ("autocast", "GradScaler"), "torch.amp", first):
        return False
    aliases = [name for name, origin in page.script.imports.items() if origin == "torch.cuda.amp"]
    if not aliases:
        return True
    others = {
        page.script.resolve(node)
        for node in ast.walk(page.script.tree)
        if isinstance(node, ast.Attribute) and page.script.resolve(node).startswith("torch.cuda.amp.")
    }
    if others - set(_AMP):
        return False
    for node in page.every(cst.ImportAlias):
        if node.asname is not None and node.evaluated_name == "torch.cuda.amp":
            edits.put(node.name, dotted("torch.amp"))
    return not imports_of(page, "torch.cuda") or move_names(
        page, edits, "torch.cuda", ("amp",), "torch", first
    )


# NumPy's aliases of Python's own types, and what took the place of others. Source: the NumPy 1.20 and 2.0 release notes.
_BUILTINS = ("float", "int", "object", "complex", "str", "bool")
_NUMPY = {f"numpy.{name}": name for name in _BUILTINS} | {"numpy.float_": "numpy.float64"}


@rewrites("removed-import")
def numpy_aliases(page: Page, item: Problem) -> Rewrite | None:
    """np.float -> float (it was the same object), np.float_ -> np.float64."""
    new = _NUMPY.get(item.about)
    if new is None or new in page.script.imports:
        return None
    edits = Edits()
    for use in uses(page, item.about):
        node = page.find(use, cst.Attribute)
        if node is None:
            return None
        edits.change(node, lambda it, new=new: _aliased(it, new))  # type: ignore[misc]
    old = item.about.replace("numpy", "np", 1)
    return Rewrite(t("{old} becomes {new}", old=old, new=new.replace("numpy", "np", 1)), edits)


def _aliased(node: Any, new: str) -> cst.CSTNode:
    if new.startswith("numpy."):
        changed: cst.CSTNode = node.with_changes(attr=cst.Name(new.partition(".")[2]))
        return changed
    return cst.Name(new, lpar=node.lpar, rpar=node.rpar)
