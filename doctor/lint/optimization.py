"""Optimizers, learning rates and accumulation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.lint.values import items_of
from doctor.model import t

_ADAMS = {"Adam", "AdamW", "NAdam", "RAdam", "Adamax"}
# bert-base-chinese, roberta-large, BertForSequenceClassification ...: encoders that 1e-3 on all weights destroys
_ENCODERS = re.compile(r"bert|electra|ernie|xlnet|deberta", re.IGNORECASE)
# AutoModelForCausalLM(Qwen/Qwen2.5-0.5B), GPT2LMHeadModel; T5 alone is trained at 1e-3, with Adafactor
_DECODERS = re.compile(r"ForCausalLM|LMHead", re.IGNORECASE)
ENCODER_LR_LIMIT = 5e-4
"""Twenty-five times the usual 2e-5; the encoders' papers use 1e-5 to 1e-4."""
DECODER_LR_LIMIT = 2e-3
ANY_LR_LIMIT = 5e-3


@rule
def learning_rate(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is the learning rate far too high for a pretrained model trained whole?"""
    if script.mentions("peft") or script.mentions("lora") or _freezes(script) or _from_scratch(script):
        return
    names = list(_pretrained_names(script))
    if not names:
        return
    for call in script.calls:
        rate = script.constant(_rate_of(script, call), call.scope)
        if isinstance(rate, (int, float)) and rate >= _limit(names) and _whole_model(script, call):
            title = t(
                "A learning rate of {rate} on all weights of a pretrained model ({model}) destroys what it knows.",
                rate=f"{rate:g}",
                model=names[0],
            )
            advice = t(
                "Start at 2e-5 (1e-5 to 1e-4 for encoders) with warm-up; a higher rate is for the new head alone."
            )
            yield problem("learning-rate-too-high", "warn", call, title, advice)


def _limit(names: list[str]) -> float:
    if any(_ENCODERS.search(name) for name in names):
        return ENCODER_LR_LIMIT
    return DECODER_LR_LIMIT if all(_DECODERS.search(name) for name in names) else ANY_LR_LIMIT


def _rate_of(script: Script, call: Call) -> ast.expr | None:
    if call.method in _ADAMS:
        return call.argument(1, "lr")
    kind = script.kind_of(call)
    return call.keywords.get("learning_rate") if kind.endswith("TrainingArguments") else None


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


# self.model.parameters() is the whole of it, self.classifier.parameters() is not
_PART = re.compile(r"head|classif|fc|proj|linear|crf|decoder|adapter|prompt|pooler|out(?:put)?$", re.IGNORECASE)  # fmt: skip


def _whole_model(script: Script, call: Call) -> bool:
    """Return whether an optimizer gets ``model.parameters()`` as it is (TrainingArguments always trains everything)."""
    if call.method not in _ADAMS:
        return True
    first = script.value_of(call.argument(0, "params"), call.scope)
    if isinstance(first, ast.List):
        return bool(first.elts) and all(_whole_group(script, item) for item in first.elts)
    if not isinstance(first, ast.Call) or not isinstance(first.func, ast.Attribute):
        return False
    owner = script.resolve(first.func.value)
    return first.func.attr == "parameters" and bool(owner) and not _PART.search(owner.rpartition(".")[2])


def _whole_group(script: Script, item: ast.expr) -> bool:
    """A group of ``model.named_parameters()`` without a rate of its own, as weight decay is set apart."""
    group = items_of(item)
    if group is None or "lr" in group or "params" not in group:
        return False
    owners = [
        script.resolve(node.func.value)
        for node in ast.walk(group["params"])
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("named_parameters", "parameters")
    ]
    picked = any(isinstance(node, ast.Constant) and isinstance(node.value, str) and _PART.search(node.value) for node in ast.walk(group["params"]))  # fmt: skip
    return bool(owners) and not picked and not any(_PART.search(one.rpartition(".")[2]) for one in owners)


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
        if call.loops
        and not call.node.args  # opt.step(context_id) of distributed autograd, opt.step(closure)
        and ("opt" in call.receiver.lower() or call.receiver.lower().endswith("scaler"))
    ]
    backward = any(call.loops for call in script.methods("backward"))
    cleared = any(
        call.method in ("zero_grad", "clear_grad", "clear_gradients", "initialize", "Accelerator")
        for call in script.calls
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
