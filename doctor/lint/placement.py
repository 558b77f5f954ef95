"""Where a model is when its optimizer is made: fused kernels and state that stay on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import Text, t

_OPTIMIZERS = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SGD", "Adagrad", "RMSprop", "Adadelta")
_STATE_FROM_THE_START = ("Adagrad",)
"""Optimizers that make their state when they are made, beside the parameters as they are then."""


@rule
def optimizer_before_cuda(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is an optimizer made, or its state loaded, before its model is on the card where that matters?"""
    for call in script.calls:
        if call.method not in _OPTIMIZERS:
            continue
        moves = _moves_of(script, call)
        if not moves:
            continue
        for title in _troubles(script, installed, call, moves):
            advice = t("Move the model first, then build the optimizer.")
            yield problem("optimizer-before-cuda", "fail", call, title, advice)


def _moves_of(script: Script, call: Call) -> list[Call]:
    """Return the calls in the same scope that move the model whose parameters the optimizer is given."""
    first = script.value_of(call.argument(0, "params"), call.scope)
    owner = first.func if isinstance(first, ast.Call) else None
    model = script.resolve(owner.value) if isinstance(owner, ast.Attribute) else ""
    return [
        other
        for other in script.methods("to", "cuda")
        if model and other.receiver == model and other.scope == call.scope and _may_be_a_card(script, other)
    ]


def _may_be_a_card(script: Script, move: Call) -> bool:
    target = script.constant(move.argument(0, "device"), move.scope)
    return target != "cpu"


def _troubles(script: Script, installed: Installed, call: Call, moves: list[Call]) -> Iterator[Text]:
    late = all(move.order > call.order for move in moves)
    fused = script.constant(call.keywords.get("fused"), call.scope) is True
    if late and fused and installed.at_least("torch", "2.4") is False:
        yield t("fused=True while the parameters are still on the CPU: before torch 2.4 that raises.")
    elif late and call.method in _STATE_FROM_THE_START:
        yield t("{optimizer} makes its state on the CPU here, and the model is moved afterwards: the first step raises, since both must be on one device.", optimizer=call.method)  # fmt: skip
    elif late and _loads_state_before(script, call, moves):
        yield t("The optimizer's state is loaded while the model is on the CPU, and the model is moved afterwards: the first step raises, since both must be on one device.")  # fmt: skip


def _loads_state_before(script: Script, call: Call, moves: list[Call]) -> bool:
    names = {name for (_, name), values in script.assigned.items() if any(value is call.node for _, value in values)}  # fmt: skip
    return any(
        other.receiver in names
        and other.scope == call.scope
        and call.order < other.order < min(move.order for move in moves)
        for other in script.methods("load_state_dict")
    )
