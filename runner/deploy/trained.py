"""A trained model opened: what it is for, what goes in, how long a text may be; asked with a batch. Opened by :mod:`runner.deploy.opening`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from runner.deploy.session import ask
from runner.inputs import InputError
from runner.text import t


@dataclass
class Trained:
    """A model in fp32 on the CPU, in evaluation mode, with its tokenizer."""

    folder: Path
    config: Any
    model: Any
    tokenizer: Any
    kind: str
    """``classification``, ``token-classification``, ``masked-lm``, ``causal-lm`` or ``features``."""
    max_length: int
    """Longest text in tokens; what is longer is cut."""
    input_names: tuple[str, ...]
    """What the model is given, in this order; int64 ``[texts, tokens]`` each."""

    @property
    def problem(self) -> str:
        """``single_label_classification``, ``multi_label_classification``, ``regression``; else empty."""
        if self.kind != "classification":
            return ""
        given = getattr(self.config, "problem_type", None)
        return given or ("regression" if self.config.num_labels == 1 else "single_label_classification")

    @property
    def labels(self) -> list[str]:
        """The classes in the order of their ids; empty where the model answers with tokens or features."""
        if "classification" not in self.kind:
            return []
        names = self.config.id2label
        return [str(names.get(index, f"LABEL_{index}")) for index in range(self.config.num_labels)]

    @property
    def vocabulary(self) -> int:
        """How many token ids both the tokenizer and the model know."""
        return min(len(self.tokenizer), self._rows())

    def _rows(self) -> int:
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def output_name(self) -> str:
        return "last_hidden_state" if self.kind == "features" else "logits"

    def answer(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the model's output of one batch: ``[texts, classes]`` or ``[texts, tokens, ...]``, fp32.

        Raises:
            InputError: the tokenizer made a token that the model has no embedding of.
        """
        highest = int(batch["input_ids"].max())
        if highest >= self._rows():
            raise InputError(
                t("the tokenizer does not belong to this model: it made token {token}, and the model knows {count}",
                  token=highest, count=self._rows())
            )  # fmt: skip
        with torch.inference_mode():
            return getattr(self.model(**batch, **self.extra), self.output_name).float()

    @property
    def extra(self) -> dict[str, Any]:
        """What the model is told beside its inputs: a language model is not to return its cache."""
        return {"use_cache": False} if self.kind == "causal-lm" else {}


class OnnxModel(Trained):
    """An ONNX file beside its configuration and tokenizer, as :mod:`runner.deploy.exporting` leaves it."""

    def _rows(self) -> int:
        return len(self.tokenizer)

    def answer(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.from_numpy(ask(self.model, batch))


def encode(trained: Trained, texts: list[str], pairs: list[str] | None = None) -> dict[str, torch.Tensor]:
    """Return texts as one padded batch: int64 ``[texts, tokens]`` each.

    Where a text becomes no token at all (an empty one, by a tokenizer that adds nothing), it gets the padding token,
    which the model then reads: some answer is better than an error for one row of a million.
    """
    encoded = trained.tokenizer(
        texts, pairs, truncation=True, max_length=trained.max_length, padding=True, return_tensors="pt"
    )
    batch = {name: encoded[name].long() for name in trained.input_names}
    return with_a_token(batch, trained.tokenizer.pad_token_id or 0)


def unread_tokens(trained: Trained, batch: dict[str, torch.Tensor], *texts: Any, **options: Any) -> list[int]:
    """Return for each text of an encoded batch how many of its tokens lie beyond the longest length.

    ``texts``, ``options``: what the tokenizer was given. Only a row that is as long as can be may be cut; it is encoded again.
    """
    mask = batch.get("attention_mask")
    filled = (
        mask.sum(1).tolist() if mask is not None else [batch["input_ids"].shape[1]] * len(batch["input_ids"])
    )
    full = [row for row, count in enumerate(filled) if count >= trained.max_length]
    unread = [0] * len(filled)
    if full:
        whole = trained.tokenizer(*([part[row] for row in full] for part in texts), **options)["input_ids"]
        for row, ids in zip(full, whole, strict=True):
            unread[row] = len(ids) - int(filled[row])
    return unread


def with_a_token(batch: dict[str, torch.Tensor], pad: int) -> dict[str, torch.Tensor]:
    """Return the batch with at least one token that is looked at in every row."""
    mask = batch.get("attention_mask")
    if mask is None or bool(mask.any(1).all()):
        return batch
    if mask.shape[1] == 0:
        fill = {"input_ids": pad, "attention_mask": 1}
        return {name: torch.full((len(mask), 1), fill.get(name, 0)) for name in batch}
    mask[~mask.any(1), 0] = 1
    return batch
