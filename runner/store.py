"""Rows as token ids in flat files: written here once, mapped by :class:`runner.data.TokenStore`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

from runner.data import DataFacts, PartFacts
from runner.inputs import InputError, file_sha256
from runner.language_tasks import IGNORED
from runner.rows import Row
from runner.tasks import Task
from runner.text import Text, t
from runner.token_task import TokenClassification, on_first_tokens


class StoreWriter:
    """Appends tokenised rows to the flat files of one part."""

    def __init__(
        self,
        folder: Path,
        part: str,
        task: Task,
        tokenizer: Any,
        max_length: int,
        paired: bool,
        has_types: bool,
    ) -> None:
        if isinstance(task, TokenClassification) and not tokenizer.is_fast:
            raise InputError(t("token-classification: this tokenizer does not say which word a token is of; "
                               "take a model with a fast tokenizer"))  # fmt: skip
        self.folder, self.task, self.tokenizer, self.max_length = folder, task, tokenizer, max_length
        self.paired = paired
        self.names = {name: f"{part}.{name}.bin" for name in ("ids", "offsets", "rows", "labels")}
        if has_types:
            self.names["types"] = f"{part}.types.bin"
        self.files = {name: open(folder / file, "wb") for name, file in self.names.items()}  # noqa: SIM115
        self.files["offsets"].write(numpy.int64(0).tobytes())
        self.facts = PartFacts(
            samples=0, tokens=0, truncated=0, unknown_tokens=0, longest=0,
            class_counts=[0] * len(task.classes), sha256={},
        )  # fmt: skip

    def add(self, rows: list[tuple[int, Row]]) -> None:
        pairs = [row.pair for _, row in rows] if self.paired else None
        per_token = isinstance(self.task, TokenClassification)
        texts = [list(row.words) if per_token else row.text for _, row in rows]
        encoded = self.tokenizer(
            texts, pairs, truncation=True, max_length=self.max_length, is_split_into_words=per_token,
            return_attention_mask=False, return_token_type_ids="types" in self.files,
        )  # fmt: skip
        if self.tokenizer.is_fast:
            self.facts.truncated += sum(bool(encoding.overflowing) for encoding in encoded.encodings)
        for index, (number, row) in enumerate(rows):
            ids = encoded["input_ids"][index]
            label = self.task.encode(row.label)
            if isinstance(self.task, TokenClassification):
                label = on_first_tokens(self.task.encode(row.label), encoded.word_ids(index))
            self._add_one(number, label, ids)
            if "types" in self.files:
                self.files["types"].write(numpy.asarray(encoded["token_type_ids"][index], "int8").tobytes())

    def _add_one(self, number: int, label: Any, ids: list[int]) -> None:
        facts = self.facts
        facts.samples += 1
        facts.tokens += len(ids)
        facts.longest = max(facts.longest, len(ids))
        facts.unknown_tokens += (
            ids.count(self.tokenizer.unk_token_id) if self.tokenizer.unk_token_id is not None else 0
        )
        for one in label if isinstance(self.task, TokenClassification) else [label]:
            if isinstance(one, int) and one != IGNORED:
                facts.class_counts[one] += 1
        self.files["ids"].write(numpy.asarray(ids, "int32").tobytes())
        self.files["offsets"].write(numpy.int64(facts.tokens).tobytes())
        self.files["rows"].write(numpy.int64(number).tobytes())
        self.files["labels"].write(numpy.asarray(label, self.task.label_dtype).tobytes())

    def close(self) -> PartFacts:
        for file in self.files.values():
            file.close()
        self.facts.sha256 = {name: file_sha256(self.folder / name) for name in self.names.values()}
        return self.facts


def token_notes(facts: DataFacts) -> Iterator[tuple[str, Text]]:
    """Yield ``(level, sentence)`` for what the tokens say."""
    train = facts.train
    yield "info", t("{train} {train:row|rows} to train on, {held_out} held out, {classes} {classes:class|classes}",
                    train=train.samples, held_out=facts.eval.samples, classes=len(facts.classes))  # fmt: skip
    share = train.truncated / train.samples
    if share > 0.01:
        yield "info", t("{percent}% of the texts are longer than {length} {length:token|tokens} and are cut",
                        percent=f"{share:.0%}"[:-1], length=facts.max_length)  # fmt: skip
    unknown = train.unknown_tokens / max(1, train.tokens)
    if unknown > 0.01:
        yield "warn", t("{percent}% of the tokens are unknown to the tokenizer ([UNK]): is it made for this language?",
                        percent=f"{unknown:.1%}"[:-1])  # fmt: skip
