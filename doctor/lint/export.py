"""ONNX export: axes, modes and the exporter's own needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


def _uses_dynamo(script: Script, call: Call, installed: Installed) -> bool | None:
    """Return which exporter runs: True the dynamo one, None when the version does not say."""
    asked = script.constant(call.keywords.get("dynamo"), call.scope)
    return asked if isinstance(asked, bool) else installed.at_least("torch", "2.9")


@rule
def dynamo_default(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does the export rely on the old exporter's arguments under a torch whose default is the new one?"""
    for call in script.named("torch.onnx.export"):
        asked = script.constant(call.keywords.get("dynamo"), call.scope)
        if "dynamo" not in call.keywords and call.has_double_star:
            continue
        if asked is not True and ("dynamo" in call.keywords or not installed.at_least("torch", "2.9")):
            continue
        if "dynamic_axes" in call.keywords and asked is not True:
            title = t(
                "Since torch 2.9 the default exporter is dynamo: dynamic_axes is only converted, with a warning, and may be refused."
            )
            yield problem(
                "onnx-dynamo-default-dynamic-axes",
                "warn",
                call,
                title,
                t(
                    "Pass dynamic_shapes, or dynamo=False for the old exporter; `doctor export FOLDER --onnx` tries both on a folder that save_pretrained wrote."
                ),
            )
        if installed.is_missing("onnxscript"):
            title = (
                t("The dynamo exporter of torch imports onnxscript, which is not installed.")
                if asked is True
                else t(
                    "The default exporter of torch 2.9 and newer imports onnxscript, which is not installed."
                )
            )
            yield problem(
                "needed-package-missing",
                "fail",
                call,
                title,
                t("`python -m pip install onnxscript`, or dynamo=False."),
                "onnxscript",
            )


@rule
def fixed_axes(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are batch and length frozen at the example's?"""
    for call in script.named("torch.onnx.export"):
        given = [call.keywords[name] for name in ("dynamic_axes", "dynamic_shapes") if name in call.keywords]
        empty = [_is_empty(script.value_of(node, call.scope)) for node in given]
        if (given and not all(empty)) or call.has_double_star:
            continue
        text = (
            "input_ids" in ast.unparse(call.node)
            or script.mentions("tokenizer")
            or script.mentions("input_ids")
        )
        title = t("No axis is dynamic: the exported model takes only the example's batch size and length.")
        advice = t(
            'Name them: dynamic_axes={"input_ids": {0: "batch", 1: "length"}, ...} (old exporter) or dynamic_shapes (dynamo). Of a folder that save_pretrained wrote, `doctor export FOLDER --onnx` writes a file with both free and compares its answers with torch.'
        )
        yield problem("onnx-fixed-axes", "warn" if text else "note", call, title, advice)


def _is_empty(node: ast.expr | None) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.Dict) and not node.keys)  # fmt: skip


@rule
def training_mode(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a model exported, or compared with its export, while dropout and batch norm still train?"""
    for call in script.named("torch.onnx.export"):
        node = call.argument(0, "model")
        model = script.resolve(node) if node is not None else ""
        if not model or not _may_be_training(script, model, call):
            continue
        compared = [other for other in script.calls if other.name == model and other.scope == call.scope]
        if not compared and _uses_dynamo(script, call, installed) is not True:
            continue  # the old exporter switches to eval by itself; without a comparison nothing is wrong
        title = t(
            "{model} is never set to eval(): dropout and batch norm train, so outputs are random and differ from the exported model's.",
            model=model,
        )
        yield problem(
            "onnx-export-in-train-mode",
            "fail",
            call,
            title,
            t("{model}.eval() before the export and the comparison.", model=model),
        )


def _makes_a_module(callee: str) -> bool:
    """A class, or a model's ``from_config``; what another function (or ``from_pretrained``) gives may stand in eval."""
    last = callee.rpartition(".")[2]
    return last[:1].isupper() or last == "from_config"


def _may_be_training(script: Script, name: str, export: Call) -> bool:
    """Return whether ``name`` is certainly built here in training mode and never set to eval before the export."""
    values = [value for value, _ in script.attributes_given.get(name, [])]
    for depth in range(len(export.scope), -1, -1):
        values = values or [value for _, value in script.assigned.get((export.scope[:depth], name), [])]
    built = bool(values) and all(
        isinstance(value, ast.Call) and _makes_a_module(script.resolve(value.func)) for value in values
    )
    retrained = any(
        call.method == "train" and call.receiver == name and not call.node.args for call in script.calls
    )
    evaluated = any(call.receiver == name and call.order < export.order for call in script.methods("eval"))
    chained = any("eval()" in ast.unparse(value) or "from_pretrained" in ast.unparse(value) for value in values)  # fmt: skip
    switched = any(
        call.receiver == name
        and not call.node.args
        and call.scope == export.scope
        and call.order < export.order
        for call in script.methods("train")
    )
    return not evaluated and (switched or ((built or retrained) and not chained))
