"""Accumulated gradients: is the loss divided, is the last window stepped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeAlias

from doctor.lint import Installed, Problem, Script, problem, rule
from doctor.lint.backward import backward_in, calls_in, divides, takes_new_data
from doctor.model import t

Body: TypeAlias = "ast.For | ast.While | ast.FunctionDef | ast.Module"


@rule
def accumulation(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is the loss of accumulated micro-batches left undivided, or the last window never stepped?"""
    for node in ast.walk(script.tree):
        if isinstance(node, (ast.For, ast.While)) or (
            isinstance(node, ast.FunctionDef) and node.name == "training_step"
        ):
            yield from _stepping_every_n(script, node)
    if not any(isinstance(node, (ast.For, ast.While, ast.FunctionDef)) for node in ast.walk(script.tree)):
        yield from _stepping_every_n(script, script.tree)  # the inside of a loop, pasted alone
    for node in ast.walk(script.tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                yield from _stepping_after_the_loop(script, body)


def _stepping_every_n(script: Script, node: Body) -> Iterator[Problem]:
    counters = _counters(node)
    guard = next((item for item in _statements(node) if isinstance(item, ast.If) and _steps_every_n(item, counters)), None)  # fmt: skip
    backward = backward_in(node)
    if guard is None or backward is None or _inner_loop_has(node, backward):
        return
    if _steps_every_time(node, guard):
        return  # n_critic: the guarded step is another optimizer's
    count = _modulus(guard.test, counters)
    if not divides(script, node, backward) and not _divided_elsewhere(script, count):
        yield _undivided(backward, count)
    test = ast.unparse(guard.test)
    told = "len(" in test or " or " in test or "sync" in test
    if not told and not isinstance(node, ast.FunctionDef) and not _steps_after(script, node):
        title = t(
            "The last batches of an epoch are dropped (or leak into the next) when their number is no multiple of {count}.",
            count=count,
        )
        advice = t("Also step when the loader is at its end.")
        yield problem("last-window-dropped", "note", guard, title, advice)


def _divided_elsewhere(script: Script, count: str) -> bool:
    """Another method of the script divides by the same number of its object: ``loss / self.accumulation_steps``."""
    return "." in count and any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and ast.unparse(node.right) == count)
        or (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Div)
            and ast.unparse(node.value) == count
        )
        for node in ast.walk(script.tree)
    )


def _steps_every_time(node: Body, guard: ast.If) -> bool:
    """An optimizer steps, or gradients are cleared, outside of the guard: nothing is accumulated."""
    inside = {id(call) for call in calls_in(guard)}
    for call in calls_in(node):
        if id(call) in inside or not isinstance(call.func, ast.Attribute):
            continue
        owner = ast.unparse(call.func.value).lower()
        steps = call.func.attr == "step" and ("opt" in owner or "scaler" in owner)
        if steps or call.func.attr == "zero_grad":
            return True
    return False


def _undivided(backward: ast.Call, count: str) -> Problem:
    title = t(
        "The loss is not divided by the {count} micro-batches of a step: gradients are that many times too large, and clipping bites too early.",
        count=count,
    )
    advice = t("(loss / {count}).backward()", count=count)
    return problem("accumulation-loss-not-scaled", "warn", backward, title, advice)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run straight through: those of ``with`` blocks too, not those of conditions."""
    for item in getattr(node, "body", ()):
        yield item
        if isinstance(item, (ast.With, ast.AsyncWith)):
            yield from _statements(item)


# for micro in batch.chunk(4) | for b in batches[:n] | for _ in range(accumulation_steps)
_OVER_PARTS = re.compile(r"micro|accum|chunk|split\(|batches", re.IGNORECASE)


def _stepping_after_the_loop(script: Script, body: list[ast.stmt]) -> Iterator[Problem]:
    """A loop over the parts of one step, each with its backward, and the step behind it."""
    for place, loop in enumerate(body):
        if not isinstance(loop, ast.For):
            continue
        over = f"{ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"
        backward = backward_in(loop)
        if backward is None or not _OVER_PARTS.search(over) or _stops(loop) or _inner_loop_has(loop, backward):  # fmt: skip
            continue
        after = [call for statement in body[place + 1 :] for call in calls_in(statement)]
        steps = any(isinstance(call.func, ast.Attribute) and call.func.attr == "step" for call in after)
        if steps and takes_new_data(loop, backward) and not divides(script, loop, backward):
            yield _undivided(backward, ast.unparse(loop.iter))


def _stops(loop: ast.For) -> bool:
    """The loop steps or clears by itself: nothing is accumulated over it."""
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr in ("step", "zero_grad")
        for call in calls_in(loop)
    )


def _counters(node: ast.AST) -> set[str]:
    """Return the names that the loop counts up by one: ``seen += 1``."""
    return {
        item.target.id
        for item in ast.walk(node)
        if isinstance(item, ast.AugAssign)
        and isinstance(item.target, ast.Name)
        and isinstance(item.op, ast.Add)
        and isinstance(item.value, ast.Constant)
        and item.value.value == 1
    }


def _steps_every_n(node: ast.If, counters: set[str]) -> bool:
    return bool(_modulus(node.test, counters)) and any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "step" for call in calls_in(node)
    )


def _modulus(test: ast.expr, counters: set[str]) -> str:
    """Return N of ``step % N == 0`` (also ``(step + 1) % N``) or ``seen == N``, or an empty string."""
    for item in ast.walk(test):
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Mod):
            return ast.unparse(item.right)
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id in counters:
        return ast.unparse(test.comparators[0]) if isinstance(test.ops[0], (ast.Eq, ast.GtE)) else ""
    return ""


def _inner_loop_has(outer: ast.AST, call: ast.Call) -> bool:
    return any(
        call in list(calls_in(inner))
        for inner in ast.walk(outer)
        if isinstance(inner, (ast.For, ast.While)) and inner is not outer
    )


def _steps_after(script: Script, loop: ast.AST) -> bool:
    end = getattr(loop, "end_lineno", None) or len(script.lines)
    return any(call.line > end and call.method == "step" for call in script.calls)
