"""What torch.load is asked to read, where it reads weights only by default."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


@rule
def load_of_whole_objects(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does torch.load read more than tensors where torch 2.6 and newer refuse that by default?"""
    if not installed.at_least("torch", "2.6") or _provides_for_it(script, installed):
        return
    for call in script.named("torch.load"):
        if "weights_only" in call.keywords or "pickle_module" in call.keywords or call.has_double_star:
            continue
        read = _objects_read_from(script, call)
        if _used_as_a_model(script, call):
            yield _whole_model(call)
        if read:
            title = t(
                "torch.load runs no pickled code by default since 2.6, and {what} of this checkpoint is usually more than tensors.",
                what=", ".join(read),
            )
            advice = t(
                "For a file you trust: torch.load(path, weights_only=False); better, save plain dictionaries and tensors."
            )
            yield problem("torch-load-weights-only-default", "warn", call, title, advice)


def _provides_for_it(script: Script, installed: Installed) -> bool:
    """Classes are allowed by name, or the old default is asked for by the variable of torch."""
    allowed = script.named("torch.serialization.add_safe_globals", "torch.serialization.safe_globals")
    variable = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    return any(True for _ in allowed) or script.mentions(variable) or bool(installed.variable(variable))


# Keys under which scripts keep objects of their own classes; numbers and strings are loaded either way.
_OBJECT_KEYS = {
    "args",
    "config",
    "cfg",
    "opts",
    "hparams",
    "hyper_parameters",
    "best",
    "vocab",
    "model_args",
    "label_encoder",
    "scaler_obj",
}


_MAYBE_PLAIN = {"config", "cfg", "opts", "hparams", "model_args", "vocab"}
"""Keys whose values are often plain dictionaries, which are loaded either way."""


def _used_as_a_mapping(script: Script, node: ast.Subscript) -> bool:
    """``Net(**ck["config"])``, ``ck["config"]["dim"]``, ``ck["config"].items()``: a plain dictionary; ``.dim`` is not."""
    around = script.parents.get(id(node))
    if isinstance(around, ast.Attribute):
        return around.attr in ("items", "keys", "values", "get")
    mapped = (isinstance(around, ast.keyword) and around.arg is None) or isinstance(around, ast.Compare)
    if not isinstance(around, ast.Assign):
        return mapped or isinstance(around, ast.Subscript)
    names = {target.id for target in around.targets if isinstance(target, ast.Name)}
    uses = [script.parents.get(id(one)) for one in ast.walk(script.tree) if isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load)]  # fmt: skip
    return bool(uses) and all(
        (isinstance(use, ast.keyword) and use.arg is None)
        or isinstance(use, ast.Subscript)
        or (isinstance(use, ast.Attribute) and use.attr in ("items", "keys", "values", "get"))
        for use in uses
    )


def _objects_read_from(script: Script, call: Call) -> list[str]:
    names = _names_of(script, call)
    read = []
    for node in script.subscripts:
        if node.value is call.node or script.resolve(node.value) in names:
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            plain = key in _MAYBE_PLAIN and _used_as_a_mapping(script, node)
            if key in _OBJECT_KEYS and not plain:
                read.append(str(key))
    return list(dict.fromkeys(read))


def _used_as_a_model(script: Script, call: Call) -> bool:
    """``model = torch.load(path)`` and then ``model.eval()`` or ``model(x)``: a pickled module, not a state dict."""
    names = _names_of(script, call)
    around = script.parents.get(id(call.node))
    chained = isinstance(around, ast.Attribute) and around.attr in ("eval", "train")
    used = any(script.methods_called.get(name, set()) & _OF_A_MODEL for name in names)
    return chained or used or bool(names & script.methods_called.get("", set()))


_OF_A_MODEL = {"eval", "train", "parameters", "named_parameters", "state_dict", "predict"}


def _names_of(script: Script, call: Call) -> set[str]:
    """Return the variables that are given what ``call`` returns."""
    places = script.names_given.get(id(call.node), [])
    return {name for scope, name in places if scope == call.scope or "." in name}


def _whole_model(call: Call) -> Problem:
    title = t(
        "A whole model is read: since 2.6 torch.load refuses pickled classes by default (Weights only load failed)."
    )
    advice = t(
        "For a file you trust: torch.load(path, weights_only=False); better, save model.state_dict() and load it into a model that the script makes."
    )
    return problem("torch-load-weights-only-default", "fail", call, title, advice)
