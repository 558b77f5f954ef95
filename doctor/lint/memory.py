"""Memory that a script loses: retries inside except, logits piled up, losses kept with their graphs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


@rule
def retry_inside_except(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is an out-of-memory retried inside the except block, where the failed frames are still held?"""
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Try):
            continue
        tried = {ast.unparse(call.func) for statement in node.body for call in _calls_in(statement)}
        for handler in node.handlers:
            if not _catches_oom(script, handler):
                continue
            for statement in handler.body:
                again = next((call for call in _calls_in(statement) if ast.unparse(call.func) in tried), None)
                if again is not None:
                    title = t(
                        "The retry runs inside the except block: the exception still holds the failed step's tensors."
                    )
                    advice = t("Set a flag in the handler and retry after the try statement has been left.")
                    yield problem("oom-retry-inside-except", "warn", again, title, advice)
                    break


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (item for item in ast.walk(node) if isinstance(item, ast.Call))


def _catches_oom(script: Script, handler: ast.ExceptHandler) -> bool:
    kinds = (
        handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []
    )
    names = [script.resolve(kind) for kind in kinds]
    if any(name.endswith("OutOfMemoryError") for name in names):
        return True
    return "RuntimeError" in names and any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) and "out of memory" in item.value
        for item in ast.walk(handler)
    )


# AutoModelForCausalLM, GPT2LMHeadModel, BertForMaskedLM: logits of one row per token and one column per vocabulary entry
_LANGUAGE_MODEL = re.compile(
    r"LMHead|ForCausalLM|ForMaskedLM|ForConditionalGeneration|ForSeq2SeqLM|ForPreTraining"
)
_LANGUAGE_MODEL_NAME = re.compile(r"(?:^|_)(?:lm|llm|gpt\d?|causal|language_model)(?:_|$)", re.IGNORECASE)


@rule
def logits_pile_up(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does evaluation keep a language model's logits of the whole set on the card?"""
    for trainer in script.calls:
        if trainer.method != "Trainer" or "compute_metrics" not in trainer.keywords:
            continue
        if "preprocess_logits_for_metrics" in trainer.keywords or trainer.has_double_star:
            continue
        settings = [call for call in script.calls if call.method == "TrainingArguments"]
        if any(
            {"eval_accumulation_steps", "batch_eval_metrics", "prediction_loss_only"} & set(call.keywords)
            or call.has_double_star
            for call in settings
        ):
            continue
        if _is_language_model(script, trainer):
            title = t(
                "compute_metrics makes evaluation gather the logits of every token over the whole vocabulary, on the card."
            )
            advice = t(
                "Give preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1), or eval_accumulation_steps."
            )
            yield problem("eval-logits-accumulate", "warn", trainer, title, advice)


def _is_language_model(script: Script, trainer: Call) -> bool:
    model = trainer.keywords.get("model") or (trainer.node.args[0] if trainer.node.args else None)
    if isinstance(model, ast.Name) and _LANGUAGE_MODEL_NAME.search(model.id):
        return True
    made = script.value_of(model, trainer.scope)
    return isinstance(made, ast.Call) and bool(_LANGUAGE_MODEL.search(script.resolve(made.func)))


@rule
def loss_kept(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a loss tensor summed over steps with its graph still attached?"""
    for scope, node in script.augmented:
        if (
            not isinstance(node.op, ast.Add)
            or not isinstance(node.value, ast.Name)
            or not isinstance(node.target, ast.Name)
        ):
            continue
        losses = {call.receiver for call in script.methods("backward") if call.scope == scope}
        if (
            node.value.id in losses
            and node.target.id not in losses
            and not _made_a_number(script, scope, node.value.id)
        ):
            title = t(
                "{total} += {loss} keeps every step's graph until the sum is dropped.",
                total=node.target.id,
                loss=node.value.id,
            )
            yield problem(
                "loss-kept-as-tensor",
                "warn",
                node,
                title,
                t("Write {loss}.detach() (or .item()).", loss=node.value.id),
            )


def _made_a_number(script: Script, scope: tuple[str, ...], name: str) -> bool:
    """Return whether ``name`` is also given a number or a detached tensor (``loss = loss.item()``)."""
    values = [value for _, value in script.assigned.get((scope, name), [])]
    return any(
        isinstance(value, ast.Call)
        and script.resolve(value.func).rpartition(".")[2] in ("item", "detach", "float")
        for value in values
    )
