"""What is learnt: how a label becomes numbers, what the loss of a batch is, and how good the answers are.

The loss is computed here, from logits in fp32, as a *sum*; the trainer divides by the denominator of the
whole window. A model's own loss is never asked for: it is a mean whose divisor nobody can see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from runner.classes import OfClasses
from runner.inputs import InputError
from runner.labels import label_names
from runner.language_tasks import CausalLM, MaskedLM
from runner.rows import Label
from runner.text import t
from runner.token_task import TokenClassification


class Classification(OfClasses):
    """One class a text. Labels: class ids, int64 ``[samples]``; logits ``[samples, classes]``."""

    problem_type = "single_label_classification"

    def encode(self, label: Label) -> int:
        return self.ids[label_names(label)[0]]

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        weights = self.weights_at(logits.device)
        return F.cross_entropy(
            logits.float(), labels, weight=weights, reduction="sum", label_smoothing=self.smoothing
        )

    def denominator(self, labels: torch.Tensor) -> float:
        """Return what a window's loss sum is divided by: its samples, or the sum of their class weights."""
        return self.weighed(labels)

    def metrics(self) -> ClassificationMetrics:
        return ClassificationMetrics(self.outputs)


class ClassificationMetrics:
    """Counts, so that no metric depends on how the samples were batched."""

    main, larger_is_better = "accuracy", True

    def __init__(self, classes: int) -> None:
        self.confusion = torch.zeros(classes, classes, dtype=torch.int64)
        """``[true class, answered class]``"""

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        classes = len(self.confusion)
        pairs = labels.cpu() * classes + logits.float().argmax(-1).cpu()
        self.confusion += torch.bincount(pairs, minlength=classes * classes).view(classes, classes)

    def result(self) -> dict[str, float]:
        right = self.confusion.diagonal().double()
        true, answered = self.confusion.sum(1).double(), self.confusion.sum(0).double()
        f1 = 2 * right / (true + answered).clamp(min=1)
        return {"accuracy": float(right.sum() / true.sum()), "f1_macro": float(f1.mean())}


class MultiLabel:
    """Any number of classes a text. Labels: fp32 0 or 1 ``[samples, classes]``."""

    problem_type = "multi_label_classification"
    label_dtype = "float32"

    def __init__(self, classes: list[str]) -> None:
        self.classes = classes
        self.outputs = len(classes)
        self._ids = {name: index for index, name in enumerate(classes)}

    def encode(self, label: Label) -> list[float]:
        row = [0.0] * self.outputs
        for name in label_names(label):
            row[self._ids[name]] = 1.0
        return row

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum")

    def denominator(self, labels: torch.Tensor) -> float:
        return float(labels.numel())

    def metrics(self) -> MultiLabelMetrics:
        return MultiLabelMetrics()


class MultiLabelMetrics:
    main, larger_is_better = "f1_micro", True

    def __init__(self) -> None:
        self.right = self.answered = self.true = self.exact = self.samples = 0

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        answers, truth = logits.float().cpu() > 0, labels.cpu() > 0.5
        self.right += int((answers & truth).sum())
        self.answered += int(answers.sum())
        self.true += int(truth.sum())
        self.exact += int((answers == truth).all(-1).sum())
        self.samples += len(truth)

    def result(self) -> dict[str, float]:
        f1 = 2 * self.right / max(1, self.answered + self.true)
        return {"f1_micro": f1, "accuracy": self.exact / max(1, self.samples)}


class Regression:
    """One number a text. Labels: fp32 ``[samples]``; logits ``[samples, 1]``."""

    problem_type = "regression"
    label_dtype = "float32"
    classes: list[str] = []
    outputs = 1

    def encode(self, label: Label) -> float:
        return float(label_names(label)[0])

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(logits.float().squeeze(-1), labels, reduction="sum")

    def denominator(self, labels: torch.Tensor) -> float:
        return float(labels.numel())

    def metrics(self) -> RegressionMetrics:
        return RegressionMetrics()


class RegressionMetrics:
    main, larger_is_better = "mse", False

    def __init__(self) -> None:
        self.squares = self.absolutes = 0.0
        self.samples = 0

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        errors = logits.double().squeeze(-1).cpu() - labels.double().cpu()
        self.squares += float((errors**2).sum())
        self.absolutes += float(errors.abs().sum())
        self.samples += len(errors)

    def result(self) -> dict[str, float]:
        return {"mse": self.squares / max(1, self.samples), "mae": self.absolutes / max(1, self.samples)}


class WithOwnLoss:
    """A task whose loss is the user's: ``function(logits, labels)`` gives one loss a sample."""

    def __init__(self, task: Any, function: Callable[..., Any]) -> None:
        self.task, self.function = task, function
        self.problem_type, self.label_dtype = task.problem_type, task.label_dtype
        self.classes, self.outputs = task.classes, task.outputs
        self.encode, self.metrics = task.encode, task.metrics

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        losses = self.function(logits.float(), labels)
        shape = tuple(getattr(losses, "shape", ()))
        if shape != (len(labels),):
            raise InputError(
                t("train.loss: one loss a sample is wanted, shape ({samples},), not {shape}; take no mean",
                  samples=len(labels), shape=str(shape))
            )  # fmt: skip
        return losses.sum()

    def denominator(self, labels: torch.Tensor) -> float:
        return float(len(labels))


Task = Classification | MultiLabel | Regression | TokenClassification | WithOwnLoss | CausalLM | MaskedLM


def balanced_weights(counts: list[int]) -> list[float]:
    """Return a weight a class, inverse to its count, with a mean over the samples of 1."""
    total, classes = sum(counts), len(counts)
    return [total / (classes * count) if count else 0.0 for count in counts]


def make_task(
    name: str, classes: list[str], **options: Any
) -> Classification | MultiLabel | Regression | TokenClassification:
    if name == "multi-label":
        return MultiLabel(classes)
    if name == "regression":
        return Regression()
    if name == "token-classification":
        return TokenClassification(classes, **options)
    return Classification(classes, **options)
