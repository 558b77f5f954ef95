"""What one line of a training log says in numbers: a progress bar, Trainer's dictionary, JSON, ``key=value``. Pure.

A line is read only when it looks like one of these forms; a loss, a learning rate or a metric is taken under the names
that training scripts use. Everything else is not progress, and says nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

LONGEST = 4000
"""Characters; no line of progress is longer."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
# Epoch 1:  10%|█         | 50/500 [00:10<01:30,  5.01it/s, loss=0.693]
_BAR = re.compile(
    r"^(?P<title>.*?)(?:\s*\d{1,3}%\|[^|]*\|)\s*(?P<done>\d+)/(?P<total>\d+) "
    r"\[(?P<spent>[\d:]+)<[^,\]]*(?:,\s*(?P<rate>[^,\]]*))?(?P<postfix>(?:,[^\]]*)?)\]"
)
# 'loss': 0.6931   |   'loss': '0.6931'   |   "loss": NaN
_PAIR_IN_DICT = re.compile(rf"""['"]([\w/ .-]+)['"]:\s*['"]?({_NUMBER})['"]?(?=\s*[,}}])""", re.IGNORECASE)
# step=100 loss=0.5   |   Step: 100, train loss: 0.5   |   Loss: 0.2345
_PAIR = re.compile(
    rf"([A-Za-z][\w/]*(?: (?:loss|acc|accuracy|lr|norm|rate))?)\s*[=:]\s*({_NUMBER})(?![\w:])", re.IGNORECASE
)
# iter 100: loss 4.2   |   Step [100/600]   |   Batch 10/50   |   step: 100/600
_PLACE = re.compile(
    r"\b(?P<name>global_step|step|iter|iteration|batch|epoch)\s*[=:#]?\s*[\[(]?\s*(?P<done>\d+)"
    r"(?:\s*(?:/|of)\s*(?P<total>\d+))?",
    re.IGNORECASE,
)
# iter 100: loss 4.2103   |   | loss 0.53 | ppl 1.7
_BARE = re.compile(
    rf"\b((?:train|training|val|valid|validation|eval|test)?[ _/]?(?:loss|lr|acc|accuracy))\s+({_NUMBER})\b",
    re.IGNORECASE,
)

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


@dataclass(frozen=True)
class Said:
    """What a line said; absent: it did not say it."""

    done: int | None = None
    """The position it names: a step, or a place within an epoch (:attr:`total`)."""
    total: int | None = None
    is_bar: bool = False
    title: str = ""
    """What stands before a progress bar."""
    epoch: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """``loss lr grad_norm`` of training."""
    evaluation: dict[str, float] = field(default_factory=dict)

    @property
    def is_progress(self) -> bool:
        return bool(self.values or self.evaluation or (self.is_bar and self.done is not None))


def read_line(line: str) -> Said | None:
    """Return what ``line`` says of a training's progress; None: nothing that is recognised."""
    if len(line) > LONGEST:
        return None
    text = " ".join(ESCAPES.sub("", line).split())
    bar = _BAR.search(text)
    if bar is not None:
        return _from_bar(bar)
    if text.startswith("{") and text.endswith("}"):
        said = _from_json(text) or _from_dict(text)
    else:
        said = _from_words(text)
    return said if said is not None and said.is_progress else None


def _from_bar(match: re.Match[str]) -> Said:
    title = match["title"].strip().rstrip(":")
    pairs: dict[str, Any] = dict(_PAIR.findall(title) + _PAIR.findall(match["postfix"] or ""))
    values, evaluation, _ = sorted_values(pairs)
    # Downloads and file reads count bytes or examples: 440M/440M [00:05<00:00, 80.1MB/s], 1000 examples/s
    counts_steps = (match["rate"] or "").strip().endswith(("it/s", "s/it"))
    return Said(
        done=int(match["done"]) if counts_steps else None,
        total=int(match["total"]) if counts_steps else None,
        is_bar=True,
        title=title,
        values=values,
        evaluation=evaluation,
    )


def _from_json(text: str) -> Said | None:
    try:
        tree = json.loads(text)
    except ValueError:
        return None
    return _from_pairs({str(name): value for name, value in tree.items()}) if isinstance(tree, dict) else None


def _from_dict(text: str) -> Said | None:
    return _from_pairs(dict(_PAIR_IN_DICT.findall(text)))


def _from_pairs(pairs: dict[str, Any]) -> Said | None:
    values, evaluation, done = sorted_values(pairs)
    if not values and not evaluation:
        return None
    return Said(done=done, epoch=_number(pairs.get("epoch")), values=values, evaluation=evaluation)


def _from_words(text: str) -> Said | None:
    """Read ``key=value`` words; a line without a place (a step, a batch or an epoch) is no progress."""
    places = {match["name"].lower(): match for match in _PLACE.finditer(text)}
    pairs: dict[str, Any] = dict(_BARE.findall(text))
    pairs.update(_PAIR.findall(text))
    values, evaluation, done = sorted_values(pairs)
    place = next(
        (places[name] for name in ("global_step", "step", "iter", "iteration", "batch") if name in places),
        None,
    )
    epoch = places.get("epoch")
    if ("loss" not in values and not evaluation) or not (place or epoch or done is not None):
        return None
    if place is not None:
        done = int(place["done"])
    total = int(place["total"]) if place and place["total"] else None
    return Said(
        done=done,
        total=total,
        epoch=float(epoch["done"]) if epoch else None,
        values=values,
        evaluation=evaluation,
    )


def sorted_values(pairs: dict[str, Any]) -> tuple[dict[str, float], dict[str, float], int | None]:
    """Return the training's values, the evaluation's, and the step that ``pairs`` name."""
    values: dict[str, float] = {}
    evaluation: dict[str, float] = {}
    done: int | None = None
    for raw, item in pairs.items():
        name, value = _plain_name(raw), _number(item)
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
    plain = {_plain_name(raw): _number(item) for raw, item in pairs.items()}
    rows = rows_evaluated(plain.get("eval_runtime"), plain.get("eval_samples_per_second"))
    if evaluation and rows is not None:
        evaluation["samples"] = rows
    # Trainer's closing line: {'train_runtime': 12.3, 'train_samples_per_second': 80.1, 'train_loss': 0.5, 'epoch': 3.0}
    if "train_runtime" in plain:
        values = {}
    return values, evaluation, done


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


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip(), re.IGNORECASE):
        return float(value)
    return None
