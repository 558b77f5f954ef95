"""Optimizers, learning rates and accumulation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t

_ADAMS = {"Adam", "AdamW", "NAdam", "RAdam", "Adamax"}
# bert-base-chinese, roberta-large, BertForSequenceClassification ...: encoders that 1e-3 on all weights destroys
_ENCODERS = re.compile(r"bert|electra|ernie|xlnet|deberta", re.IGNORECASE)
ENCODER_LR_LIMIT = 5e-4
"""Twenty-five times the usual 2e-5; the encoders' papers use 1e-5 to 1e-4."""
ANY_LR_LIMIT = 5e-3


@rule
def learning_rate(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is the learning rate far too high for a pretrained model trained whole?"""
    if script.mentions("peft") or script.mentions("lora") or _freezes(script) or _from_scratch(script):
        return
    names = list(_pretrained_names(script))
    if not names:
        return
    limit = ENCODER_LR_LIMIT if any(_ENCODERS.search(name) for name in names) else ANY_LR_LIMIT
    for call in script.calls:
        node = (
            call.keywords.get("lr")
            if call.method in _ADAMS
            else call.keywords.get("learning_rate")
            if call.method.endswith("TrainingArguments")
            else None
        )
        rate = script.constant(node, call.scope)
        if isinstance(rate, float) and rate >= limit and _whole_model(call):
            title = t(
                "A learning rate of {rate} on all weights of a pretrained model ({model}) destroys what it knows.",
                rate=f"{rate:g}",
                model=names[0],
            )
            advice = t(
                "Start at 2e-5 (1e-5 to 1e-4 for encoders) with warm-up; a higher rate is for the new head alone."
            )
            yield problem("learning-rate-too-high", "warn", call, title, advice)


def _pretrained_names(script: Script) -> Iterator[str]:
    for call in script.methods("from_pretrained"):
        if any(word in call.receiver for word in ("Tokenizer", "Config", "Processor")):
            continue
        name = script.constant(call.node.args[0], call.scope) if call.node.args else None
        yield (
            f"{call.receiver.rpartition('.')[2]}({name})"
            if isinstance(name, str)
            else call.receiver.rpartition(".")[2]
        )


def _freezes(script: Script) -> bool:
    assigned = any(name.endswith("requires_grad") for _, name in script.assigned)
    return assigned or any(True for _ in script.methods("requires_grad_"))


def _from_scratch(script: Script) -> bool:
    return any(True for _ in script.methods("from_config"))


def _whole_model(call: Call) -> bool:
    """Return whether an optimizer gets ``model.parameters()`` as it is (TrainingArguments always trains everything)."""
    if call.method.endswith("TrainingArguments"):
        return True
    first = call.node.args[0] if call.node.args else None
    return (
        isinstance(first, ast.Call)
        and isinstance(first.func, ast.Attribute)
        and first.func.attr == "parameters"
        and isinstance(first.func.value, ast.Name)
    )


@rule
def fused_before_cuda(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a fused optimizer built before its model is on the card?"""
    if installed.at_least("torch", "2.4") is not False:
        return
    for call in script.calls:
        if (
            call.method not in (*_ADAMS, "SGD")
            or script.constant(call.keywords.get("fused"), call.scope) is not True
        ):
            continue
        first = call.node.args[0] if call.node.args else None
        model = (
            script.resolve(first.func.value)
            if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute)
            else ""
        )
        moves = [
            other
            for other in script.methods("to", "cuda")
            if other.receiver == model and other.scope == call.scope
        ]
        if model and moves and all(move.order > call.order for move in moves):
            title = t("fused=True while the parameters are still on the CPU: before torch 2.4 that raises.")
            yield problem(
                "optimizer-before-cuda",
                "fail",
                call,
                title,
                t("Move the model first, then build the optimizer."),
            )


@rule
def accumulation(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is the loss of accumulated micro-batches left undivided, or the last window never stepped?"""
    for node in ast.walk(script.tree):
        if not isinstance(node, (ast.For, ast.While)):
            continue
        guard = next((item for item in node.body if isinstance(item, ast.If) and _steps_every_n(item)), None)
        backward = next(
            (
                item
                for item in _calls(node)
                if isinstance(item.func, ast.Attribute) and item.func.attr == "backward"
            ),
            None,
        )
        if guard is None or backward is None or _inner_loop_has(node, backward):
            continue
        count = _modulus(guard.test)
        if not _divides(script, node, backward):
            title = t(
                "The loss is not divided by the {count} micro-batches of a step: gradients are that many times too large, and clipping bites too early.",
                count=count,
            )
            yield problem(
                "accumulation-loss-not-scaled",
                "warn",
                backward,
                title,
                t("(loss / {count}).backward()", count=count),
            )
        test = ast.unparse(guard.test)
        if "len(" not in test and " or " not in test and not _steps_after(script, node):
            title = t(
                "The last batches of an epoch are dropped (or leak into the next) when their number is no multiple of {count}.",
                count=count,
            )
            yield problem(
                "last-window-dropped", "note", guard, title, t("Also step when the loader is at its end.")
            )


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (item for item in ast.walk(node) if isinstance(item, ast.Call))


def _steps_every_n(node: ast.If) -> bool:
    return bool(_modulus(node.test)) and any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "step" for call in _calls(node)
    )


def _modulus(test: ast.expr) -> str:
    """Return N of ``step % N == 0`` (also ``(step + 1) % N``), or an empty string."""
    for item in ast.walk(test):
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Mod):
            return ast.unparse(item.right)
    return ""


def _inner_loop_has(outer: ast.For | ast.While, call: ast.Call) -> bool:
    return any(
        call in list(_calls(inner))
        for inner in ast.walk(outer)
        if isinstance(inner, (ast.For, ast.While)) and inner is not outer
    )


def _divides(script: Script, loop: ast.AST, backward: ast.Call) -> bool:
    """Return whether the loss is divided anywhere in the loop, or by the engine that runs backward."""
    if any(isinstance(item, ast.Div) for item in ast.walk(loop)):
        return True
    text = ast.unparse(backward.func)
    if text.startswith(("accelerator.", "self.accelerator.", "fabric.", "model_engine.", "engine.")):
        return True
    return any(
        isinstance(item, ast.keyword) and item.arg in ("gradient_accumulation_steps", "num_items_in_batch")
        for item in ast.walk(loop)
    )


def _steps_after(script: Script, loop: ast.AST) -> bool:
    end = getattr(loop, "end_lineno", 0) or 0
    return any(call.line > end and call.method == "step" for call in script.calls)


@rule
def clipping(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a hand-written loop clip its gradients?"""
    steps = [call for call in script.methods("backward") if call.loops]
    uses_engine = any(
        call.method.endswith(("TrainingArguments", "Trainer")) or call.method in ("Accelerator", "initialize")
        for call in script.calls
    )
    if steps and not uses_engine and not any(call.method.startswith("clip_grad") for call in script.calls):
        title = t("Gradients are not clipped: one bad batch can ruin the run.")
        yield problem(
            "clipping-missing",
            "note",
            steps[0],
            title,
            t("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before optimizer.step()."),
        )


@rule
def zero_grad(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are gradients ever cleared in a hand-written loop?"""
    steps = [
        call
        for call in script.methods("step")
        if call.loops and ("opt" in call.receiver.lower() or call.receiver.lower().endswith("scaler"))
    ]
    backward = any(call.loops for call in script.methods("backward"))
    cleared = any(
        call.method in ("zero_grad", "initialize", "Accelerator") for call in script.calls
    ) or "grad = None" in "\n".join(script.lines)
    if steps and backward and not cleared:
        title = t("zero_grad is never called: each step adds its gradients to all earlier ones.")
        yield problem(
            "zero-grad-missing",
            "warn",
            steps[0],
            title,
            t("optimizer.zero_grad(set_to_none=True) after each step."),
        )
