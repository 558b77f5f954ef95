"""What runs backward in a loop: the call, what feeds it, whether it is divided on its way. Shared by rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint.script import Script


def backward_in(node: ast.AST) -> ast.Call | None:
    """Return the first call of ``backward`` in ``node``."""
    return next(
        (
            item
            for item in calls_in(node)
            if isinstance(item.func, ast.Attribute) and item.func.attr in ("backward", "manual_backward")
        ),
        None,
    )


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """Yield every call in ``node``."""
    return (item for item in ast.walk(node) if isinstance(item, ast.Call))


def names_in(node: ast.AST) -> set[str]:
    """Return the variables that ``node`` reads or gives."""
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and item.id != "self"}


def divides(script: Script, body: ast.AST, backward: ast.Call) -> bool:
    """Return whether what runs backward is divided (or scaled) on its way, or by the engine that runs it."""
    manual = isinstance(backward.func, ast.Attribute) and backward.func.attr == "manual_backward"
    if backward.args and not manual:
        return True  # accelerator.backward(loss), engine.backward(loss), fabric.backward(loss)
    nodes = list(ast.walk(body))
    if any(_scales(node) and _is_of_gradients(node) for node in nodes):
        return True
    return any(_scales(node) for way in _ways(body, backward) for node in ast.walk(way)) or any(
        isinstance(item, ast.keyword) and item.arg in ("gradient_accumulation_steps", "num_items_in_batch")
        for item in nodes
    )


def _ways(body: ast.AST, backward: ast.Call) -> list[ast.AST]:
    """Return the call and the assignments of ``body`` that lead to what it is called on."""
    feeds = names_in(backward)
    ways: list[ast.AST] = [backward]
    nodes = list(ast.walk(body))
    for _ in range(4):  # loss <- total <- parts
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if node not in ways and any(names_in(target) & feeds for target in targets):
                    feeds |= names_in(node.value)
                    ways.append(node)
    return ways


def _is_of_gradients(node: ast.AST) -> bool:
    # p.grad.data.div_(n) | p.grad /= n
    left = node.target if isinstance(node, ast.AugAssign) else node.left if isinstance(node, ast.BinOp) else node.func if isinstance(node, ast.Call) else node  # fmt: skip
    return ".grad" in ast.unparse(left)


def _scales(node: ast.AST) -> bool:
    if isinstance(node, (ast.AugAssign, ast.BinOp)):
        return isinstance(node.op, (ast.Div, ast.Mult))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("div", "div_", "mul", "mul_", "true_divide")
    return False


def takes_new_data(loop: ast.For, backward: ast.Call) -> bool:
    """Return whether each pass is over data of its own; one batch run twice is a measurement, no accumulation.

    Data comes from what the loop goes over (``for micro in parts``), from a name given anew in it, or from a call
    within the forward (``model(next(batches))``).
    """
    values = [
        way.value
        for way in _ways(loop, backward)[1:]
        if isinstance(way, (ast.Assign, ast.AnnAssign, ast.AugAssign))
    ]
    reads = names_in(backward).union(*(names_in(value) for value in values if value is not None))
    anew = {name for node in ast.walk(loop) for name in _given(node)} - names_in(backward)
    return bool((anew | names_in(loop.target)) & reads) or any(
        isinstance(inner, ast.Call)
        for value in (*values, backward)
        if value is not None
        for call in calls_in(value)
        for argument in (*call.args, *(word.value for word in call.keywords))
        for inner in ast.walk(argument)
    )


def _given(node: ast.AST) -> set[str]:
    """Return the variables that a statement gives a value: ``x, y = get_batch()``."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    named = [
        one
        for target in targets
        for one in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    ]
    return {one.id for one in named if isinstance(one, ast.Name)}
