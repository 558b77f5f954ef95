"""Low-rank adapters (LoRA) by peft, an extra of its own: put on, and merged into a whole model at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.inputs import InputError
from runner.profile import LoraSection
from runner.tasks import Task
from runner.text import t

_KINDS = {"causal_lm": "CAUSAL_LM", "token_classification": "TOKEN_CLS", "masked_lm": None}


def with_adapters(model: Any, lora: LoraSection, task: Task) -> Any:
    """Return the model with adapters; only these and a new head are trained.

    Raises:
        InputError: peft is not installed or too old for what is here, or does not know the model's layers.
    """
    try:
        import peft
    except ImportError as error:
        raise InputError(
            t("model.lora needs peft, which cannot be imported ({why}); install it with: {command}",
              why=str(error), command="pip install --no-deps peft")
        ) from error  # fmt: skip
    try:
        config = peft.LoraConfig(
            task_type=_KINDS.get(task.problem_type, "SEQ_CLS"),
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=lora.targets or None,
        )
        return peft.get_peft_model(model, config)
    except ValueError as error:  # no target layers known, or none found by the names given
        raise InputError(
            t("model.lora: {why}; name the layers in model.lora.targets", why=str(error)[:500])
        ) from error


def save_with_adapters(model: Any, lora: LoraSection, folder: Path) -> None:
    """Write the adapter, and where wanted a whole model with the adapter merged into its weights.

    Merged in place, so that a large model is not in memory twice: nothing is trained with ``model`` after this.
    """
    if not lora.merge:
        model.save_pretrained(str(folder))
        return
    model.save_pretrained(str(folder / "adapter"))
    model.merge_and_unload().save_pretrained(str(folder))
