"""Rows made into token ids: one chunk in, flat arrays out. The same chunk gives the same bytes, in whichever process."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy

from runner.inputs import InputError
from runner.language_tasks import IGNORED
from runner.rows import Row
from runner.tasks import Task
from runner.text import t
from runner.token_task import TokenClassification, on_first_tokens
from runner.vocabulary import before_a_blank

MOST_CHARACTERS, CHARACTERS_A_TOKEN = 1 << 17, 32
"""A text that is cut at ``max_length`` anyway is tokenised from its beginning alone: fifty megabytes in one line take some
gigabytes otherwise. Where that beginning does not fill ``max_length``, all of it is."""

Chunk = list[tuple[int, Row]]
"""``(source row, row)``"""


class Encoded(NamedTuple):
    """One chunk's rows, one after another."""

    rows: Any
    """Source rows, int64."""
    lengths: Any
    """Tokens a row, int64."""
    ids: Any
    """int32, all rows together."""
    labels: bytes
    """As the task stores them."""
    types: Any
    """int8 as ``ids``; None: the model's inputs have none."""
    truncated: int
    unknown: int
    class_counts: list[int]
    characters: int


class RowEncoder:
    """Tokenises chunks for one task. ``whole``: nothing is cut at ``max_length``; whoever takes the ids cuts them."""

    def __init__(
        self, task: Task, tokenizer: Any, max_length: int, paired: bool, has_types: bool, whole: bool = False
    ) -> None:
        if isinstance(task, TokenClassification) and not tokenizer.is_fast:
            raise InputError(t("token-classification: this tokenizer does not say which word a token is of; "
                               "take a model with a fast tokenizer"))  # fmt: skip
        self.task, self.tokenizer, self.max_length = task, tokenizer, max_length
        self.paired, self.has_types, self.whole = paired, has_types, whole
        self.per_token = isinstance(task, TokenClassification)
        self.most_characters = (
            max(MOST_CHARACTERS, CHARACTERS_A_TOKEN * max_length) if tokenizer.is_fast else sys.maxsize
        )

    def __call__(self, chunk: Chunk) -> Encoded:
        encoded = self._tokenised(chunk)
        ids = [numpy.asarray(one, "int32") for one in encoded["input_ids"]]
        labels = self._labels(chunk, encoded)
        flat = numpy.concatenate(ids)
        unknown = self.tokenizer.unk_token_id
        types = encoded.get("token_type_ids") if self.has_types else None
        return Encoded(
            rows=numpy.asarray([number for number, _ in chunk], "int64"),
            lengths=numpy.asarray([len(one) for one in ids], "int64"),
            ids=flat,
            labels=b"".join(numpy.asarray(label, self.task.label_dtype).tobytes() for label in labels),
            types=None if types is None else numpy.concatenate([numpy.asarray(one, "int8") for one in types]),
            truncated=sum(bool(one.overflowing) for one in encoded.encodings) if self.tokenizer.is_fast else 0,
            unknown=0 if unknown is None else int((flat == unknown).sum()),
            class_counts=self._counts(labels),
            characters=sum(len(row.text) + len(row.pair) for _, row in chunk),
        )  # fmt: skip

    def _tokenised(self, chunk: Chunk) -> Any:
        texts: list[Any] = [list(row.words) if self.per_token else row.text for _, row in chunk]
        pairs = [row.pair for _, row in chunk] if self.paired else None
        longest = max(len(row.text) for _, row in chunk)
        if longest > self.most_characters and not (self.whole or self.per_token or pairs):
            short = [before_a_blank(text, self.most_characters) for text in texts]
            encoded = self._cut(short, None)
            if all(
                one.overflowing or text == part
                for one, text, part in zip(encoded.encodings, texts, short, strict=True)
            ):
                return encoded
        return self._cut(texts, pairs)

    def _cut(self, texts: list[Any], pairs: list[str] | None) -> Any:
        cut = {} if self.whole else {"truncation": True, "max_length": self.max_length}
        return self.tokenizer(
            texts, pairs, is_split_into_words=self.per_token, return_attention_mask=False,
            return_token_type_ids=self.has_types, verbose=False, **cut,
        )  # fmt: skip

    def _labels(self, chunk: Chunk, encoded: Any) -> list[Any]:
        labels: list[Any] = [self.task.encode(row.label) for _, row in chunk]
        if not self.per_token:
            return labels
        return [on_first_tokens(label, encoded.word_ids(index)) for index, label in enumerate(labels)]

    def _counts(self, labels: list[Any]) -> list[int]:
        counts = [0] * len(self.task.classes)
        for label in labels:
            for one in label if self.per_token else [label]:
                if isinstance(one, int) and one != IGNORED:
                    counts[one] += 1
        return counts
