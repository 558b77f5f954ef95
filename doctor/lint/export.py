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
        if "dynamo" in call.keywords or not installed.at_least("torch", "2.9"):
            continue
        if "dynamic_axes" in call.keywords:
            title = t(
                "Since torch 2.9 the default exporter is dynamo: dynamic_axes is only converted, with a warning, and may be refused."
            )
            yield problem(
                "onnx-dynamo-default-dynamic-axes",
                "warn",
                call,
                title,
                t("Pass dynamic_shapes, or dynamo=False for the old exporter."),
            )
        if installed.is_missing("onnxscript"):
            title = t(
                "The default exporter of torch 2.9 and newer imports onnxscript, which is not installed."
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
        if {"dynamic_axes", "dynamic_shapes"} & set(call.keywords) or call.has_double_star:
            continue
        text = (
            "input_ids" in ast.unparse(call.node)
            or script.mentions("tokenizer")
            or script.mentions("input_ids")
        )
        title = t("No axis is dynamic: the exported model takes only the example's batch size and length.")
        advice = t(
            'Name them: dynamic_axes={"input_ids": {0: "batch", 1: "length"}, ...} (old exporter) or dynamic_shapes (dynamo).'
        )
        yield problem("onnx-fixed-axes", "warn" if text else "note", call, title, advice)


@rule
def training_mode(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a model exported, or compared with its export, while dropout and batch norm still train?"""
    for call in script.named("torch.onnx.export"):
        model = call.node.args[0] if call.node.args else call.keywords.get("model")
        if not isinstance(model, ast.Name) or not _may_be_training(script, model.id, call):
            continue
        compared = [other for other in script.calls if other.name == model.id and other.scope == call.scope]
        if not compared and _uses_dynamo(script, call, installed) is not True:
            continue  # the old exporter switches to eval by itself; without a comparison nothing is wrong
        title = t(
            "{model} is never set to eval(): dropout and batch norm train, so outputs are random and differ from the exported model's.",
            model=model.id,
        )
        yield problem(
            "onnx-export-in-train-mode",
            "fail",
            call,
            title,
            t("{model}.eval() before the export and the comparison.", model=model.id),
        )


def _may_be_training(script: Script, name: str, export: Call) -> bool:
    """Return whether ``name`` is certainly built here in training mode and never set to eval before the export."""
    values = [value for _, value in script.assigned.get((export.scope, name), [])]
    built = bool(values) and all(
        isinstance(value, ast.Call) and not script.resolve(value.func).endswith("from_pretrained")
        for value in values
    )
    retrained = any(
        call.method == "train" and call.receiver == name and not call.node.args for call in script.calls
    )
    evaluated = any(
        call.method == "eval" and call.receiver == name and call.order < export.order for call in script.calls
    )
    chained = any(
        isinstance(value, ast.Call) and script.resolve(value.func).endswith(".eval") for value in values
    )
    return (built or retrained) and not evaluated and not chained
