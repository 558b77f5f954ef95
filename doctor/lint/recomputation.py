"""Rules about activation checkpointing (recomputing activations in the backward pass)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.lint.values import items_of
from doctor.model import Level, t


@rule
def reentrant_with_frozen_inputs(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does re-entrant activation checkpointing run over inputs that need no gradient?"""
    if any(True for _ in script.methods("enable_input_require_grads", "prepare_model_for_kbit_training")):
        return
    if script.mentions("unsloth") or any(map(_is_of_trl, script.calls)):
        return  # these call enable_input_require_grads themselves
    defaults_to_other = bool(installed.at_least("transformers", "5.0"))
    level: Level = "warn" if installed.version("transformers") is None else "fail"
    advice = t(
        "gradient_checkpointing_kwargs={'use_reentrant': False}; before transformers 4.35 call model.enable_input_require_grads()."
    )
    title = t(
        "Re-entrant checkpointing over frozen inputs lets no gradient through: nothing below is trained."
    )
    for call in _reentrant_calls(script, defaults_to_other):
        if _meets_frozen_inputs(script, call, installed):
            if _shut_each_other_out(script, call):
                continue
            # Adapters on a condition and checkpointing on a condition need not meet.
            apart = call.guarded and any(other.guarded for other in script.methods("get_peft_model"))
            kept: Level = "warn" if apart or _brings_its_own_code(script) else level
            yield problem("reentrant-checkpoint-frozen-inputs", kept, call, title, advice)


def _shut_each_other_out(script: Script, call: Call) -> bool:
    """``if args.use_lora: get_peft_model(...)`` and ``if not args.use_lora: ...enable()``."""
    refused = {
        name
        for test in _tests_around(script, call.node)
        for item in ast.walk(test)
        if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.Not)
        for name in _dotted_in(item.operand)
    }
    wanted = [
        {name for test in _tests_around(script, other.node) for name in _dotted_in(test)}
        for other in script.methods("get_peft_model")
    ]
    if wanted and all(names & refused for names in wanted):
        return True
    equal = _compared(script, call.node, ast.Eq)
    unlike = [_compared(script, other.node, ast.NotEq) for other in script.methods("get_peft_model")]
    return bool(unlike) and all(equal & pairs for pairs in unlike)


def _compared(script: Script, node: ast.AST, operator: type[ast.cmpop]) -> set[tuple[str, str]]:
    # args.adapter == "full" -> ("args.adapter", "'full'")
    return {
        (ast.unparse(item.left), ast.unparse(item.comparators[0]))
        for test in _tests_around(script, node)
        for item in ast.walk(test)
        if isinstance(item, ast.Compare) and isinstance(item.ops[0], operator)
    }


def _tests_around(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the tests of the ``if`` statements whose body ``node`` stands in."""
    child: ast.AST = node
    while (around := script.parents.get(id(child))) is not None:
        if isinstance(around, ast.If) and child in around.body:
            yield around.test
        child = around


def _dotted_in(test: ast.expr) -> set[str]:
    return {ast.unparse(item) for item in ast.walk(test) if isinstance(item, (ast.Name, ast.Attribute))} - {
        "args", "self", "config", "cfg", "opt",
    }  # fmt: skip


def _reentrant_calls(script: Script, defaults_to_other: bool) -> Iterator[Call]:
    for call in script.calls:
        arguments = script.kind_of(call).endswith("TrainingArguments")
        if call.has_double_star or not (arguments or call.method == "gradient_checkpointing_enable"):
            continue
        if arguments and script.constant(call.keywords.get("gradient_checkpointing"), call.scope) is not True:
            continue
        given = call.keywords.get("gradient_checkpointing_kwargs")
        if given is None and not arguments:
            given = call.argument(0, "gradient_checkpointing_kwargs")
        if given is None and not defaults_to_other:
            yield call
        elif given is not None:
            choice = (items_of(script.value_of(given, call.scope)) or {}).get("use_reentrant")
            if script.constant(choice, call.scope) is True:
                yield call


def _meets_frozen_inputs(script: Script, call: Call, installed: Installed) -> bool:
    adapters = [other for other in script.calls if other.method == "get_peft_model"]
    # peft 0.4 and newer makes the inputs require gradients itself when checkpointing is on before the adapters come.
    alone = installed.at_least("peft", "0.4") is False
    on_before = not alone and any(
        other.method == "gradient_checkpointing_enable" and other.order < adapter.order
        for other in script.calls
        for adapter in adapters
    )
    if call.method == "gradient_checkpointing_enable":
        after = any(
            (alone or adapter.order < call.order) and _given_to(script, adapter) in ("", call.receiver)
            for adapter in adapters
        )
        return (after and not on_before) or _freezes_embeddings(script, call.receiver)
    return (_uses_adapters(script) and not on_before) or _freezes_embeddings(script, "")


def _given_to(script: Script, call: Call) -> str:
    """Return the variable that gets what ``call`` makes; empty when it goes elsewhere."""
    return next((name for (_, name), values in script.assigned.items() if any(value is call.node for _, value in values)), "")  # fmt: skip


def _brings_its_own_code(script: Script) -> bool:
    """The model's code comes with the checkpoint, and how it recomputes is not seen here."""
    return any(script.constant(call.keywords.get("trust_remote_code"), call.scope) is True for call in script.methods("from_pretrained") if "Tokenizer" not in call.receiver)  # fmt: skip


def _is_of_trl(call: Call) -> bool:
    return call.name.startswith("trl.") and call.method.endswith("Trainer")


def _uses_adapters(script: Script) -> bool:
    if not (script.mentions("peft") or script.mentions("lora")):
        return False
    made = [call for call in script.calls if call.method in _MAKERS or "peft_config" in call.keywords]
    loaded = [call for call in script.calls if call.name.endswith("PeftModel.from_pretrained")]
    if made or not loaded:
        return True
    trained = [call.order for call in script.methods("train") if call.receiver.lower().endswith("trainer")]
    return not trained or any(
        call.order < max(trained) for call in loaded
    )  # behind it: to try what was trained


_MAKERS = (
    "get_peft_model", "add_adapter", "inject_adapter_in_model", "create_and_replace", "mark_only_lora_as_trainable",
)  # fmt: skip


# model.bert.embeddings.parameters() | if name.startswith("roberta.embeddings") | wte, embed_tokens
_EMBEDDINGS = re.compile(r"embeddings?\b|embed_tokens|\bwte\b")


# text_model.embeddings.position_embedding: the words' own embedding still asks for gradients
_OF_PLACES = re.compile(r"position|token_type|segment")


def _freezes_embeddings(script: Script, model: str) -> bool:
    """Return whether the embeddings of ``model`` (of any, when empty) are frozen: in a loop, or by requires_grad_(False)."""
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.For):
            continue
        over, body = ast.unparse(node.iter), ast.unparse(node)
        freezes = "requires_grad = False" in body or "requires_grad_(False)" in body
        if freezes and over.startswith(f"{model}." if model else "") and _EMBEDDINGS.search(body):
            return True
    of_words = [call for call in script.methods("requires_grad_") if _EMBEDDINGS.search(call.receiver) and not _OF_PLACES.search(call.receiver)]  # fmt: skip
    asked = [script.constant(call.node.args[0]) if call.node.args else True for call in of_words]
    return False in asked and True not in asked
