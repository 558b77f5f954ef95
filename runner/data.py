"""Token ids on disk, and batches of them. Made once a run, in ``RUN_DIR/data``; a resumed run reads the same
ids.

Ids lie in flat files that are mapped, not loaded, so memory does not grow with the data. Batches are padded
to the longest of them, rounded up to a multiple of 8.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy
import torch

from runner.attach import allow_attach
from runner.language_tasks import IGNORED, CausalLM, MaskedLM
from runner.order import PAD_TO, Window
from runner.packing import positions_of
from runner.seeds import seed_for
from runner.signals import ignore_in_worker
from runner.tasks import Task
from runner.token_task import TokenClassification

NO_ROW = -1
"""The row of a stand-in: what is computed so that all ranks do as much, and counts nothing."""


def counts(batch: dict[str, torch.Tensor]) -> bool:
    """Is a batch made of samples that count, and no stand-in?"""
    return int(batch["rows"][0]) != NO_ROW


class PartFacts(msgspec.Struct, kw_only=True):
    """One prepared part."""

    samples: int
    tokens: int
    truncated: int
    unknown_tokens: int
    longest: int
    class_counts: list[int]
    sha256: dict[str, str]
    """Of the files in ``RUN_DIR/data``."""


class DataFacts(msgspec.Struct, kw_only=True):
    """``data.json``: what the ids are made of."""

    plan_digest: str
    classes: list[str]
    has_types: bool
    max_length: int
    train: PartFacts
    eval: PartFacts
    source_bytes: dict[str, int] = {}
    """Of the files that the rows came from: a run that is continued tells of those that changed."""


class TokenStore(torch.utils.data.Dataset[dict[str, Any]]):
    """The samples of one part, mapped from disk."""

    def __init__(
        self,
        folder: Path,
        part: str,
        label_dtype: str,
        label_width: int,
        has_types: bool,
        per_token: bool = False,
    ) -> None:
        def mapped(name: str, dtype: str) -> Any:
            return numpy.memmap(folder / f"{part}.{name}.bin", dtype=dtype, mode="r")

        self.ids = mapped("ids", "int32")
        self.offsets = mapped("offsets", "int64")
        self.rows = mapped("rows", "int64")
        labels = mapped("labels", label_dtype)
        self.labels = labels.reshape(-1, label_width) if label_width else labels
        self.per_token = per_token
        """A label a token: labels lie as ids do."""
        self.types = mapped("types", "int8") if has_types else None
        packed = (folder / f"{part}.starts.bin").is_file()
        self.starts = mapped("starts", "int8") if packed else None
        """Of rows that texts were packed into: 1 where a text begins."""
        self.lengths = numpy.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """Return a sample; one whose number is below 0 stands in for ``~number`` and comes from no row."""
        index = number if number >= 0 else ~number
        start, end = self.offsets[index], self.offsets[index + 1]
        types = None if self.types is None else self.types[start:end]
        return {
            "ids": self.ids[start:end],
            "types": types,
            "starts": None if self.starts is None else self.starts[start:end],
            "label": self.labels[start:end] if self.per_token else self.labels[index],
            "row": self.rows[index] if number >= 0 else NO_ROW,
            "index": index,
        }


class Collate:
    """Samples made into one padded batch; padding is marked by length, never by token id."""

    def __init__(self, pad_id: int, task: Task | None = None, epoch: int = 0, width: int = 0) -> None:
        self.pad_id, self.task, self.epoch, self.width = pad_id, task, epoch, width

    def __call__(self, samples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        lengths = [len(sample["ids"]) for sample in samples]
        width = -(-max(self.width, *lengths) // PAD_TO) * PAD_TO
        ids = torch.full((len(samples), width), self.pad_id, dtype=torch.int64)
        mask = torch.zeros((len(samples), width), dtype=torch.int64)
        types = torch.zeros((len(samples), width), dtype=torch.int64)
        for index, (sample, length) in enumerate(zip(samples, lengths, strict=True)):
            ids[index, :length] = torch.from_numpy(sample["ids"].astype("int64"))
            mask[index, :length] = 1
            if sample["types"] is not None:
                types[index, :length] = torch.from_numpy(sample["types"].astype("int64"))
        batch = {
            "input_ids": ids,
            "attention_mask": mask,
            "labels": self._labels(samples, width),
            "rows": torch.tensor([int(sample["row"]) for sample in samples]),
        }
        if samples[0]["types"] is not None:
            batch["token_type_ids"] = types
        if isinstance(self.task, (CausalLM, MaskedLM)):
            self.task.finish_batch(batch, [int(sample["index"]) for sample in samples], self.epoch)
        if samples[0].get("starts") is not None:
            part_texts(batch, [sample["starts"] for sample in samples])
        return batch

    def _labels(self, samples: Sequence[dict[str, Any]], width: int) -> torch.Tensor:
        if not isinstance(self.task, TokenClassification):
            return torch.from_numpy(numpy.stack([sample["label"] for sample in samples]))
        labels = torch.full((len(samples), width), IGNORED, dtype=torch.int64)
        for row, sample in enumerate(samples):
            labels[row, : len(sample["label"])] = torch.from_numpy(sample["label"].copy())
        return labels


def part_texts(batch: dict[str, torch.Tensor], starts: Sequence[Any]) -> None:
    """Make packed rows of a batch texts apart: positions count from each text's beginning, by which attention is parted
    too where the model can, and no first token of a text is a label."""
    width = batch["input_ids"].shape[1]
    positions = torch.zeros_like(batch["input_ids"])
    for row, its in enumerate(starts):
        padded = numpy.zeros(width, "int8")
        padded[: len(its)] = its
        if len(its) < width:
            padded[len(its)] = 1  # what pads is apart from the texts as well
        positions[row] = torch.from_numpy(positions_of(padded))
        batch["labels"][row, : len(its)][torch.from_numpy(its.copy()) == 1] = IGNORED
    batch["position_ids"] = positions


class Prepared:
    """The data of a run, ready to be batched."""

    def __init__(self, folder: Path, facts: DataFacts, task: Task, tokenizer: Any, width: int = 0) -> None:
        """``width``: what every sample is padded to; 0: the longest of its batch."""
        labels = task.outputs if task.problem_type == "multi_label_classification" else 0
        parts = [
            TokenStore(
                folder, part, task.label_dtype, labels, facts.has_types, isinstance(task, TokenClassification)
            )
            for part in ("train", "eval")
        ]
        self.facts, self.task, self.tokenizer, self.width = facts, task, tokenizer, width
        self.train, self.eval = parts


def batches(
    data: Prepared,
    part: str,
    micro_batches: Iterable[list[int]],
    epoch: int,
    seed: int,
    workers: int,
    pin: bool,
) -> Generator[dict[str, torch.Tensor], None, None]:
    """Yield the batches of a part (``train`` or ``eval``) for lists of sample numbers, in order.

    The loader draws from a private generator: its draws never shift those of the training.
    """
    loader = torch.utils.data.DataLoader(
        data.train if part == "train" else data.eval,
        batch_sampler=micro_batches,  # type: ignore[arg-type,unused-ignore]
        collate_fn=Collate(data.tokenizer.pad_token_id, data.task, epoch, data.width),
        num_workers=workers,
        pin_memory=pin,
        generator=torch.Generator().manual_seed(seed_for(seed, "loader", epoch)),
        worker_init_fn=_start_worker,
        multiprocessing_context="fork" if workers else None,
    )
    yield from loader


def _start_worker(worker: int) -> None:
    ignore_in_worker()
    allow_attach()


class MicroBatches:
    """The sample lists of windows one after another, as a loader takes them; none is held."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self.windows = windows

    def __iter__(self) -> Iterator[list[int]]:
        for window in self.windows:
            yield from window
