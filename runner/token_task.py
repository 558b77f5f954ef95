"""One class a word (names, parts of speech): the label stands on the word's first token, nothing on the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from runner.classes import OfClasses
from runner.labels import label_names
from runner.language_tasks import IGNORED
from runner.rows import Label
from runner.spans import is_span_tagging, spans


def on_first_tokens(labels: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    """Return a label a token: that of its word on the word's first token, :data:`IGNORED` on all others."""
    before = [None, *word_ids]
    return [
        labels[word] if word is not None and word != last else IGNORED
        for last, word in zip(before, word_ids, strict=False)
    ]


class TokenClassification(OfClasses):
    """Labels: class ids or :data:`IGNORED`, int64 ``[samples, tokens]``; logits ``[samples, tokens, classes]``."""

    problem_type = "token_classification"

    def encode(self, label: Label) -> list[int]:
        return [self.ids[name] for name in label_names(label)]

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        weights = self.weights_at(logits.device)
        return F.cross_entropy(
            logits.float().flatten(0, 1),
            labels.flatten(),
            weight=weights,
            ignore_index=IGNORED,
            reduction="sum",
            label_smoothing=self.smoothing,
        )

    def denominator(self, labels: torch.Tensor) -> float:
        """The words that count in a window, or the sum of their class weights."""
        return self.weighed(labels[labels != IGNORED])

    def metrics(self) -> TagMetrics:
        return TagMetrics(self.classes)


class TagMetrics:
    """Right words, and where the classes name spans also right spans: type and both ends must be right.

    Words beyond ``max_length`` are not asked for and not counted.
    """

    larger_is_better = True

    def __init__(self, classes: list[str]) -> None:
        self.classes = classes
        self.with_spans = is_span_tagging(classes)
        self.main = "f1" if self.with_spans else "token_accuracy"
        self.right = self.words = self.right_spans = self.true_spans = self.answered_spans = 0

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        answers, labels = logits.float().argmax(-1).cpu(), labels.cpu()
        for answer, truth in zip(answers, labels, strict=True):
            counted = truth != IGNORED
            self._add(answer[counted].tolist(), truth[counted].tolist())

    def _add(self, answer: list[int], truth: list[int]) -> None:
        self.words += len(truth)
        self.right += sum(one == other for one, other in zip(answer, truth, strict=True))
        if self.with_spans:
            found, true = (spans([self.classes[one] for one in tags]) for tags in (answer, truth))
            self.right_spans += len(found & true)
            self.answered_spans += len(found)
            self.true_spans += len(true)

    def result(self) -> dict[str, Any]:
        accuracy = {"token_accuracy": self.right / max(1, self.words)}
        if not self.with_spans:
            return accuracy
        return {
            "f1": 2 * self.right_spans / max(1, self.answered_spans + self.true_spans),
            "precision": self.right_spans / max(1, self.answered_spans),
            "recall": self.right_spans / max(1, self.true_spans),
            **accuracy,
        }
