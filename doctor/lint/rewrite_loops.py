"""Rewrites inside the training loop: unscaling before clipping, the divided loss, the loss kept as a number."""

from __future__ import annotations

import ast
import re
from typing import Any

import libcst as cst

from doctor.lint import Call, Problem
from doctor.lint.page import Edits, Page
from doctor.lint.rewrites import Rewrite, rewrites
from doctor.lint.scaling import is_scaler
from doctor.model import t


@rewrites("clip-before-unscale")
def unscale_first(page: Page, item: Problem) -> Rewrite | None:
    """scaler.unscale_(optimizer) on the line before the clipping; the optimizer is the one the scaler steps."""
    clip = next((call for call in page.script.calls if call.line == item.line and call.method.startswith("cl")), None)  # fmt: skip
    statement = page.statement(page.find(clip.node, cst.Call)) if clip else None
    if clip is None or statement is None:
        return None
    steps = {
        f"{step.receiver}.unscale_({ast.unparse(step.node.args[0])})"
        for step in page.script.methods("step")
        if step.scope == clip.scope and step.order > clip.order and step.node.args and is_scaler(page.script, step)
    }  # fmt: skip
    if len(steps) != 1 or _clips_before(page, clip):
        return None
    (text,) = steps
    edits = Edits()
    edits.before[statement].append(page.new_statement(text))
    return Rewrite(t("{call} before the clipping", call=text), edits)


def _clips_before(page: Page, clip: Call) -> bool:
    """An earlier clipping stands in another block: where the unscaling belongs cannot be told."""
    earlier = page.script.methods("clip_grad_norm_", "clip_grad_value_")
    return any(one.scope == clip.scope and one.order < clip.order and one.block != clip.block for one in earlier)  # fmt: skip


# 4 | accumulation_steps | args.gradient_accumulation_steps | range(accumulation_steps)
_COUNT = re.compile(r"(?:range\()?([A-Za-z_][\w.]*|\d+)\)?")


@rewrites("accumulation-loss-not-scaled")
def divided_loss(page: Page, item: Problem) -> Rewrite | None:
    """(loss / N).backward(), or scaler.scale(loss / N).backward()."""
    count = str(item.advice.params.get("count", "")) if item.advice else ""
    match = _COUNT.fullmatch(count)
    call = next((one for one in page.script.methods("backward") if one.line == item.line and not one.node.args), None)  # fmt: skip
    if match is None or call is None or not isinstance(call.node.func, ast.Attribute):
        return None
    loss = _scaled_loss(call.node.func.value)
    node = page.expression(loss)
    if node is None:
        return None
    steps = cst.parse_expression(match[1])
    in_call = loss is not call.node.func.value
    edits = Edits()
    edits.change(node, lambda it: _divided(it, steps, bare=in_call))
    return Rewrite(t("the loss is divided by {count}", count=match[1]), edits)


def _scaled_loss(node: ast.expr) -> ast.expr:
    """Return ``loss`` of ``scaler.scale(loss)``, else the expression itself."""
    scales = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale"
    return node.args[0] if isinstance(node, ast.Call) and scales and len(node.args) == 1 else node


def _divided(node: Any, by: cst.BaseExpression, bare: bool) -> cst.CSTNode:
    atom = isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or node.lpar
    left = node if atom else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    quotient = cst.BinaryOperation(left, cst.Divide(), by)
    return quotient if bare else quotient.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@rewrites("loss-kept-as-tensor")
def loss_as_number(page: Page, item: Problem) -> Rewrite | None:
    """total += loss.item(), or loss.detach() where the total is used as a tensor later."""
    for _scope, found in page.script.augmented:
        value, target = found.value, found.target
        if found.lineno != item.line or not isinstance(value, ast.Name) or not isinstance(target, ast.Name):
            continue
        node = page.find(value, cst.Name)
        if node is None:
            return None
        method = "detach" if _is_used_as_tensor(page, target.id) else "item"
        edits = Edits()
        edits.put(node, cst.Call(cst.Attribute(node, cst.Name(method))))
        return Rewrite(t("{total} adds up {loss}.{method}()", total=target.id, loss=value.id, method=method), edits)  # fmt: skip
    return None


_TAKE_NUMBERS = {"print", "float", "str", "round", "append", "format", "set_postfix", "set_description", "info", "debug", "log"}  # fmt: skip


def _is_used_as_tensor(page: Page, name: str) -> bool:
    """``total.item()``, ``torch.stack(totals)``, ``dist.all_reduce(total)``, ``return total``: a number may not do."""
    for node in ast.walk(page.script.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            return True
        if isinstance(node, ast.Return) and node.value is not None and _mentions(node.value, name):
            return True
    return any(
        call.method not in _TAKE_NUMBERS and any(_mentions(one, name) for one in (*call.node.args, *call.keywords.values()))
        for call in page.script.calls
    )  # fmt: skip


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))
