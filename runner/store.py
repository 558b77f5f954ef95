"""Rows as token ids in flat files: written here once, mapped by :class:`runner.data.TokenStore`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy

from runner.data import DataFacts, PartFacts
from runner.encoded import Encoded
from runner.inputs import file_sha256
from runner.packing import Packed, Packer
from runner.tasks import Task
from runner.text import Text, t


class Position(msgspec.Struct, kw_only=True):
    """How far a part is written: enough to go on from there."""

    taken: int = 0
    """Rows of the part that were tokenised."""
    characters: int = 0
    facts: PartFacts
    sizes: dict[str, int] = {}
    waiting: list[list[int]] = []
    """See :meth:`runner.packing.Packer.waiting`."""


class StoreWriter:
    """Appends encoded chunks to the flat files of one part; ``position`` continues one that was broken off."""

    def __init__(
        self, folder: Path, part: str, task: Task, has_types: bool, packer: Packer | None = None,
        position: Position | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.packer, self.label_dtype = folder, packer, task.label_dtype
        names = ["ids", "offsets", "rows", "labels", *(["types"] if has_types else []), *(["starts"] if packer else [])]  # fmt: skip
        self.names = {name: f"{part}.{name}.bin" for name in names}
        fresh = PartFacts(samples=0, tokens=0, truncated=0, unknown_tokens=0, longest=0,
                          class_counts=[0] * len(task.classes), sha256={})  # fmt: skip
        self._at = position or Position(facts=fresh)
        self.facts = self._at.facts
        self.files = {name: open(folder / file, "ab") for name, file in self.names.items()}  # noqa: SIM115
        for name, file in self.files.items():
            file.truncate(self._at.sizes.get(name, 0))
        if packer is not None and self._at.waiting:
            packer.put_back(self._at.waiting)
        if position is None:
            self.files["offsets"].write(numpy.int64(0).tobytes())

    @property
    def taken(self) -> int:
        return self._at.taken

    @property
    def characters(self) -> int:
        return self._at.characters

    def add(self, encoded: Encoded) -> None:
        self._at.taken += len(encoded.rows)
        self._at.characters += encoded.characters
        facts = self.facts
        facts.truncated += encoded.truncated
        facts.unknown_tokens += encoded.unknown
        facts.class_counts = [a + b for a, b in zip(facts.class_counts, encoded.class_counts, strict=True)]
        if self.packer is not None:
            self._write_packed(self.packer.add(encoded.rows, encoded.lengths, encoded.ids))
            return
        self._write(encoded.rows, encoded.lengths, encoded.ids, encoded.labels)
        if encoded.types is not None:
            self.files["types"].write(encoded.types.tobytes())

    def _write_packed(self, packed: Packed) -> None:
        labels = numpy.zeros(len(packed.rows), self.label_dtype).tobytes()
        self._write(packed.rows, packed.lengths, packed.ids, labels)
        self.files["starts"].write(packed.starts.tobytes())

    def _write(self, rows: Any, lengths: Any, ids: Any, labels: bytes) -> None:
        facts = self.facts
        offsets = facts.tokens + numpy.cumsum(lengths)
        facts.samples += len(rows)
        facts.tokens += len(ids)
        facts.longest = max(facts.longest, int(lengths.max(initial=0)))
        for name, content in (("ids", ids), ("offsets", offsets), ("rows", rows)):
            self.files[name].write(content.tobytes())
        self.files["labels"].write(labels)

    def position(self) -> Position:
        """Have all of it on the disk and return how far that is."""
        for file in self.files.values():
            file.flush()
            os.fdatasync(file.fileno())
        self._at.sizes = {name: file.tell() for name, file in self.files.items()}
        self._at.waiting = self.packer.waiting() if self.packer is not None else []
        return self._at

    def close(self) -> PartFacts:
        if self.packer is not None:
            self._write_packed(self.packer.rest())
        self.abandon()
        self.facts.sha256 = {name: file_sha256(self.folder / name) for name in self.names.values()}
        return self.facts

    def abandon(self) -> None:
        """Close the files as they are."""
        for file in self.files.values():
            file.close()


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
