"""Memory that a script loses: logits piled up, losses kept with their graphs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t

# AutoModelForCausalLM, GPT2LMHeadModel, BertForMaskedLM: logits of one row per token and one column per vocabulary entry
_LANGUAGE_MODEL = re.compile(
    r"LMHead|ForCausalLM|ForMaskedLM|ForConditionalGeneration|ForSeq2SeqLM|ForPreTraining"
)
_LANGUAGE_MODEL_NAME = re.compile(r"(?:^|_)(?:lm|llm|gpt\d?|causal|language_model)(?:_|$)", re.IGNORECASE)


_SETTINGS = {
    "Trainer": ("TrainingArguments",),
    "Seq2SeqTrainer": ("Seq2SeqTrainingArguments",),
    "SFTTrainer": ("SFTConfig", "TrainingArguments"),
}
"""Trainer -> what its settings are made with."""


@rule
def logits_pile_up(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does evaluation keep a language model's logits of the whole set on the card?"""
    for trainer in script.calls:
        if script.kind_of(trainer) not in _SETTINGS or "compute_metrics" not in trainer.keywords:
            continue
        if "preprocess_logits_for_metrics" in trainer.keywords or trainer.has_double_star:
            continue
        settings = [call for call in script.calls if script.kind_of(call) in _SETTINGS[script.kind_of(trainer)]]  # fmt: skip
        if _may_generate(script, trainer, settings) or any(
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


def _may_generate(script: Script, trainer: Call, settings: list[Call]) -> bool:
    """Whether a sequence-to-sequence evaluation gives token ids in place of logits, or cannot be told not to."""
    if script.kind_of(trainer) != "Seq2SeqTrainer":
        return False
    asked = [call.keywords.get("predict_with_generate") for call in settings]
    off = [
        node is None or script.constant(node, call.scope) is False
        for node, call in zip(asked, settings, strict=True)
    ]
    return not off or not all(off)


def _is_language_model(script: Script, trainer: Call) -> bool:
    model = trainer.argument(0, "model")
    made = script.value_of(model, trainer.scope)
    if isinstance(made, ast.Call):
        return bool(_LANGUAGE_MODEL.search(script.resolve(made.func)))
    return isinstance(model, ast.Name) and bool(_LANGUAGE_MODEL_NAME.search(model.id))


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
