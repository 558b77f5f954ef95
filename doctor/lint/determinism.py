"""Deterministic algorithms: what else has to be set for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


@rule
def cublas_workspace(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are deterministic algorithms asked for on a GPU without cuBLAS's workspace setting?"""
    if installed.variable("CUBLAS_WORKSPACE_CONFIG") or "CUBLAS_WORKSPACE_CONFIG" in script.strings:
        return
    uses_gpu = any(call.method == "cuda" for call in script.calls) or any(
        "cuda" in text for text in script.strings
    )
    for call in script.named("torch.use_deterministic_algorithms"):
        on = script.constant(call.argument(0, "mode"), call.scope) is True
        warn_only = script.constant(call.keywords.get("warn_only"), call.scope) is True
        if on and not warn_only and uses_gpu and not _is_put_back(script, call):
            title = t(
                "Deterministic algorithms on a GPU need CUBLAS_WORKSPACE_CONFIG in the environment: the first matrix product raises."
            )
            yield problem(
                "cublas-workspace-unset",
                "warn" if call.guarded else "fail",
                call,
                title,
                t("`export CUBLAS_WORKSPACE_CONFIG=:4096:8` before Python starts."),
            )


def _is_put_back(script: Script, call: Call) -> bool:
    """The same ``try`` restores the setting at its end: it is on for a test, on whatever device that has."""
    node: ast.AST | None = call.node
    while node is not None and not isinstance(node, ast.Try):
        node = script.parents.get(id(node))
    return node is not None and any(
        script.resolve(one.func) == call.name
        for statement in node.finalbody
        for one in ast.walk(statement)
        if isinstance(one, ast.Call)
    )
