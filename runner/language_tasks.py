"""Language modelling: the labels are the text itself. Losses and denominators are over the tokens that
count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from runner.inputs import InputError
from runner.rows import Label
from runner.seeds import seed_for
from runner.text import t

IGNORED = -100


class TokenMetrics:
    """Loss and right answers summed over the tokens that count."""

    main, larger_is_better = "perplexity", False

    def __init__(self, shift: bool) -> None:
        self.shift = shift
        self.loss, self.right, self.tokens = 0.0, 0, 0

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        labels = labels.to(logits.device)
        if self.shift:
            logits, labels = logits[:, :-1], labels[:, 1:]
        counted = labels != IGNORED
        self.loss += float(F.cross_entropy(logits[counted].float(), labels[counted], reduction="sum"))
        self.right += int((logits[counted].argmax(-1) == labels[counted]).sum())
        self.tokens += int(counted.sum())

    def result(self) -> dict[str, float]:
        mean = self.loss / max(1, self.tokens)
        return {"perplexity": math.exp(min(mean, 700.0)), "token_accuracy": self.right / max(1, self.tokens)}


class CausalLM:
    """Each token from those before it. Logits ``[samples, tokens, vocabulary]``."""

    problem_type = "causal_lm"
    label_dtype = "float32"
    classes: list[str] = []
    outputs = 0

    def encode(self, label: Label) -> float:
        return 0.0

    def finish_batch(self, batch: dict[str, torch.Tensor], indices: Sequence[int], epoch: int) -> None:
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORED)

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(
            logits[:, :-1].float().flatten(0, 1),
            labels[:, 1:].flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )

    def denominator(self, labels: torch.Tensor) -> float:
        """The tokens that are predicted: counted after the shift, the first of a text is none of them."""
        return float((labels[:, 1:] != IGNORED).sum())

    def metrics(self) -> TokenMetrics:
        return TokenMetrics(shift=True)


class MaskedLM:
    """Hidden tokens from those around them; which are hidden is a function of (seed, epoch, sample)."""

    problem_type = "masked_lm"
    label_dtype = "float32"
    classes: list[str] = []
    outputs = 0

    def __init__(self, tokenizer: Any, seed: int, share: float) -> None:
        if tokenizer.mask_token_id is None:
            raise InputError(
                t("masked-lm: this tokenizer has no mask token; take another model or causal-lm")
            )
        self.mask_id, self.vocabulary = int(tokenizer.mask_token_id), len(tokenizer)
        self.special = torch.tensor(sorted(tokenizer.all_special_ids))
        self.seed, self.share = seed, share

    def encode(self, label: Label) -> float:
        return 0.0

    def finish_batch(self, batch: dict[str, torch.Tensor], indices: Sequence[int], epoch: int) -> None:
        """Hide ``share`` of the tokens, at least one a text: 8 of 10 masked, 1 replaced, 1 kept, as BERT was
        taught."""
        labels = torch.full_like(batch["input_ids"], IGNORED)
        for row, index in enumerate(indices):
            ids = batch["input_ids"][row]
            generator = torch.Generator().manual_seed(seed_for(self.seed, "mask", epoch, index))
            usable = (batch["attention_mask"][row] == 1) & ~torch.isin(ids, self.special)
            places = usable.nonzero().squeeze(-1)
            count = max(1, round(len(places) * self.share)) if len(places) else 0
            chosen = places[torch.randperm(len(places), generator=generator)[:count]]
            labels[row, chosen] = ids[chosen]
            fate = torch.rand(count, generator=generator)
            others = torch.randint(self.vocabulary, (count,), generator=generator)
            ids[chosen[fate < 0.8]] = self.mask_id
            ids[chosen[fate >= 0.9]] = others[fate >= 0.9]
        batch["labels"] = labels

    def loss_sum(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        counted = labels != IGNORED
        return F.cross_entropy(logits[counted].float(), labels[counted], reduction="sum")

    def denominator(self, labels: torch.Tensor) -> float:
        return float((labels != IGNORED).sum())

    def metrics(self) -> TokenMetrics:
        return TokenMetrics(shift=False)
