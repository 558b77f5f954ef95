"""The numbers of one log line, sorted by what training scripts call them: training, evaluation, the step. Pure."""

from __future__ import annotations

import re
from typing import Any

NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"

METRICS = frozenset(
    [
        "loss",
        "accuracy",
        "acc",
        "top1",
        "top5",
        "f1",
        "precision",
        "recall",
        "auc",
        "auroc",
        "perplexity",
        "ppl",
        "bleu",
        "rouge1",
        "rouge2",
        "rougel",
        "mcc",
        "wer",
        "cer",
        "mae",
        "mse",
        "rmse",
        "map",
    ]
)
"""Names that are a result also where nothing else in a line says so."""

_STEP_NAMES = (
    "step",
    "global_step",
    "iter",
    "iteration",
    "batch",
    "_step",
    "trainer/global_step",
    "num_updates",
)
_LOSSES = (
    "loss",
    "train_loss",
    "training_loss",
    "avg_loss",
    "average_loss",
    "total_loss",
    "lm_loss",
    "loss_step",
    "train_loss_step",
)
_RATES = ("lr", "learning_rate", "train_lr", "train_learning_rate", "lr_adamw", "lr_adam", "lr_sgd")
_NORMS = ("grad_norm", "gnorm", "gradient_norm", "train_grad_norm", "norm")
_EVALUATION = re.compile(r"^(?:eval|val|valid|validation|test|dev)_(.+)$")
_TIMES = (
    "runtime",
    "samples_per_second",
    "steps_per_second",
    "epoch",
    "time",
    "seconds",
    "step",
    "model_preparation_time",
)


def sorted_values(pairs: dict[str, Any]) -> tuple[dict[str, float], dict[str, float], int | None]:
    """Return the training's values, the evaluation's, and the step that ``pairs`` name."""
    values: dict[str, float] = {}
    evaluation: dict[str, float] = {}
    done: int | None = None
    entries = [(_plain_name(raw), number_in(item)) for raw, item in pairs.items()]
    for name, value in entries:
        if value is None:
            continue
        if name in _STEP_NAMES:
            done = int(value) if value == value and abs(value) < 1e15 else done
        elif name in _LOSSES:
            values.setdefault("loss", value)
        elif name in _RATES:
            values.setdefault("lr", value)
        elif name in _NORMS:
            values.setdefault("grad_norm", value)
        elif (hit := _EVALUATION.match(name)) and hit[1] not in _TIMES:
            evaluation[hit[1]] = value
    plain = dict(entries)
    rows = rows_evaluated(plain.get("eval_runtime"), plain.get("eval_samples_per_second"))
    if evaluation and rows is not None:
        evaluation["samples"] = rows
    # Trainer's closing line: {'train_runtime': 12.3, 'train_samples_per_second': 80.1, 'train_loss': 0.5, 'epoch': 3.0}
    if "train_runtime" in plain:
        values = {}
    return values, evaluation, done


def in_share(text: str, percent: str | None) -> str | float:
    """Return ``91.2 %`` as the share 0.912, so that it stands beside those of other scripts; anything else as it is."""
    value = number_in(text) if percent else None
    return text if value is None else value / 100


def rows_evaluated(seconds: float | None, rows_per_s: float | None) -> int | None:
    """Return how many rows Trainer evaluated, from its two rounded figures; None: they do not say it for sure."""
    if seconds is None or rows_per_s is None or not (seconds > 0 and rows_per_s > 0):
        return None
    rows = seconds * rows_per_s
    # four decimals of the seconds, three of the rate, or (transformers 5) four digits of each
    error = rows * 1e-4 + 0.5e-4 * rows_per_s + 0.5e-3 * seconds
    return round(rows) if error < 0.4 else None


def _plain_name(name: str) -> str:
    # train/loss, Train Loss, eval-accuracy -> train_loss, train_loss, eval_accuracy
    plain = re.sub(r"[/ .-]+", "_", name.strip().lower())
    return {"val_acc": "val_accuracy", "test_acc": "test_accuracy", "eval_acc": "eval_accuracy"}.get(
        plain, plain
    )


def number_in(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str) and re.fullmatch(NUMBER, value.strip(), re.IGNORECASE):
        return float(value)
    return None
