"""What an expression is worth without running it: literals through variables, dictionaries, defaults and options. Pure."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.lint.script import Call, Scope, Script

DEEPEST = 8
"""How many variables are followed, one after the other."""

# The names that scripts give to what argparse or a configuration returns.
_OPTIONS = {"args", "opt", "opts", "options", "flags", "cfg", "config", "conf", "hparams", "params", "hp"}


def follow(script: Script, node: ast.expr | None, scope: Scope, depth: int = 0) -> ast.expr | None:
    """Return the one value that ``node`` (a variable, attribute or item) was given, else ``node`` itself."""
    if node is None or depth > DEEPEST:
        return node
    found = _given(script, node, scope)
    if found is None:
        return node
    value, where = found
    return follow(script, value, where, depth + 1)


def _given(script: Script, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
    if isinstance(node, ast.Name):
        return _of_name(script, node.id, scope)
    if isinstance(node, ast.Attribute):
        return _of_attribute(script, node, scope)
    if isinstance(node, ast.Subscript):
        return _of_item(script, node, scope)
    return None


def _of_name(script: Script, name: str, scope: Scope) -> tuple[ast.expr, Scope] | None:
    for depth in range(len(scope), -1, -1):
        where = scope[:depth]
        values = script.assigned.get((where, name))
        function = script.functions.get(where)
        if values:
            parameter = function is not None and name in _parameters(function)
            return (values[0][1], where) if len(values) == 1 and not parameter else None
        if function is not None and name in _parameters(function):
            default = None if _is_passed(script, where, function, name) else _parameters(function)[name]
            return (default, where) if default is not None else None
    return None


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr | None]:
    """Return the parameters with their defaults."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    found = {one.arg: default for one, default in zip(plain, defaults, strict=True)}
    found |= {
        one.arg: default for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    }
    return found


def _is_passed(
    script: Script, where: Scope, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> bool:
    """Return whether a call in this script may give the parameter another value than its default."""
    names = {where[-1], *where[-2:-1]}  # the function, and the class that an __init__ belongs to
    place = list(_parameters(function)).index(name)
    return any(
        name in call.keywords or call.has_double_star or len(call.node.args) > place - len(where) + 1
        for call in script.calls
        if call.method in names
    )


def _of_attribute(script: Script, node: ast.Attribute, scope: Scope) -> tuple[ast.expr, Scope] | None:
    values = script.attributes_given.get(script.resolve(node))
    if values:
        return values[0] if len(values) == 1 else None
    base = node.value.id if isinstance(node.value, ast.Name) else ""
    made = follow(script, node.value, scope) if base and base != "self" else None
    # class Config: lr = 1e-3 ... cfg = Config() ... cfg.lr
    owner = script.resolve(made.func if isinstance(made, ast.Call) else made) if made is not None else ""
    constants = script.assigned.get(((owner,), node.attr)) if owner in script.bases else None
    if constants:
        return (constants[0][1], (owner,)) if len(constants) == 1 else None
    parsed = isinstance(made, ast.Call) and script.resolve(made.func).rpartition(".")[2].startswith("parse")
    if base.lower() in _OPTIONS or parsed:
        default = script.options.get(node.attr)
        return (default, ()) if default is not None else None
    return None


def _of_item(script: Script, node: ast.Subscript, scope: Scope) -> tuple[ast.expr, Scope] | None:
    if not isinstance(node.slice, ast.Constant):
        return None
    held = follow(script, node.value, scope)
    items = items_of(held)
    key = node.slice.value
    return (items[key], scope) if items is not None and isinstance(key, str) and key in items else None


def items_of(node: ast.expr | None) -> dict[str, ast.expr] | None:
    """Return the items of ``{"a": 1}`` or ``dict(a=1)``; None when ``node`` is neither, or holds more than can be seen."""
    if isinstance(node, ast.Dict):
        if not all(isinstance(key, ast.Constant) for key in node.keys):
            return None
        return {
            str(key.value): value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        if node.args or any(word.arg is None for word in node.keywords):
            return None
        return {word.arg: word.value for word in node.keywords if word.arg}
    return None


_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}


def literal(script: Script, node: ast.expr | None, scope: Scope, depth: int = 0) -> object:
    """Return the literal that ``node`` comes to (variables, f-strings, simple arithmetic); None when it is none."""
    value = follow(script, node, scope)
    if value is None or depth > DEEPEST:
        return None
    if isinstance(value, ast.Constant):
        return value.value
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        number = literal(script, value.operand, scope, depth + 1)
        return -number if isinstance(number, (int, float)) else None
    if isinstance(value, ast.JoinedStr):
        return _joined(script, value, scope, depth)
    if isinstance(value, ast.BinOp) and type(value.op) in _ARITHMETIC:
        return _computed(script, value, scope, depth)
    if isinstance(value, ast.Call) and script.resolve(value.func) in ("int", "float") and value.args:
        number = literal(script, value.args[0], scope, depth + 1)
        if isinstance(number, str):
            return float(number) if re.fullmatch(r"[\d.]+(?:e-?\d+)?", number) else None
        return number if isinstance(number, (int, float)) else None
    return None


def _joined(script: Script, value: ast.JoinedStr, scope: Scope, depth: int) -> str | None:
    parts: list[str] = []
    for part in value.values:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        known = literal(script, inner, scope, depth + 1)
        if known is None:
            return None
        parts.append(str(known))
    return "".join(parts)


def _computed(script: Script, value: ast.BinOp, scope: Scope, depth: int) -> object:
    left = literal(script, value.left, scope, depth + 1)
    right = literal(script, value.right, scope, depth + 1)
    if isinstance(left, str) and isinstance(right, str) and isinstance(value.op, ast.Add):
        return left + right
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    if max(abs(left), abs(right)) > 1e12 or (isinstance(value.op, ast.Div) and right == 0):
        return None
    return _ARITHMETIC[type(value.op)](left, right)


def strings_in(script: Script, node: ast.expr | None, scope: Scope) -> list[str] | None:
    """Return the strings of a list, tuple or set; None when ``node`` is none of these or holds anything else."""
    value = follow(script, node, scope)
    if not isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        return None
    found = [literal(script, item, scope) for item in value.elts]
    return [item for item in found if isinstance(item, str)] if all(isinstance(item, str) for item in found) else None  # fmt: skip


def options_of(calls: list[Call]) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, default) of each ``add_argument("--learning-rate", default=...)``."""
    for call in calls:
        if call.method not in ("add_argument", "option") or not call.node.args:
            continue
        flags = [
            item.value
            for item in call.node.args
            if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        named = call.keywords.get("dest")
        flag = str(named.value) if isinstance(named, ast.Constant) else max(flags, key=len, default="")
        default = call.keywords.get("default")
        action = call.keywords.get("action")
        if default is None and isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):  # fmt: skip
            default = ast.Constant(value=action.value == "store_false")
        if flag and default is not None:
            yield flag.lstrip("-").replace("-", "_"), default
