"""An ONNX file held against the torch model: several shapes with padding, then real texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from msgspec.structs import replace

from runner.deploy.records import Agreement, ShapeParity
from runner.deploy.session import Batch, ask
from runner.deploy.trained import Trained

SHAPES = ((1, 7), (2, 16), (3, 33), (5, 64), (8, 128), (2, 512))
"""(texts, tokens of the longest); cut to what the model takes. All but the first are padded."""
_SIDES = ("right", "left")
RTOL, ATOL = 1e-3, 1e-4
"""fp32: a difference up to ``ATOL + RTOL * |torch|`` is rounding in another order."""


def made_up_batch(trained: Trained, shape: tuple[int, int], seed: int, side: str = "right") -> Batch:
    """Return a batch of random tokens: int64 ``shape``. The first text is as long as that, all others shorter and padded on ``side``."""
    rows, length = shape
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, trained.vocabulary, shape, generator=generator)
    lengths = torch.randint(1, max(2, length), (rows,), generator=generator)
    lengths[0] = length
    places = torch.arange(length) if side == "right" else torch.arange(length).flip(0)
    mask = (places[None, :] < lengths[:, None]).long()
    pad = trained.tokenizer.pad_token_id or 0
    ids = ids.masked_fill(mask == 0, pad)
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    return {name: values[name] for name in trained.input_names}


def shapes_for(trained: Trained) -> list[tuple[int, int]]:
    """Return at least five shapes that the model takes."""
    return list(dict.fromkeys((rows, min(length, trained.max_length)) for rows, length in SHAPES))


def compare_shapes(trained: Trained, session: Any, shapes: Sequence[tuple[int, int]]) -> list[ShapeParity]:
    """Hold both against each other on made-up tokens of every shape; a shape with padding has it on either side in turn."""
    own = trained.tokenizer.padding_side
    return [
        replace(_compare_one(trained, session, shape, seed, side), is_own_side=side == own)
        for seed, shape in enumerate(shapes)
        for side in (_SIDES if shape[0] > 1 else (own,))
    ]


def _compare_one(trained: Trained, session: Any, shape: tuple[int, int], seed: int, side: str) -> ShapeParity:
    batch = made_up_batch(trained, shape, seed, side)
    want, got = trained.answer(batch).numpy(), ask(session, batch)
    if want.shape != got.shape:
        words = f"{trained.output_name}: torch {list(want.shape)}, ONNX {list(got.shape)}"
        return ShapeParity(
            shape=shape, side=side, max_difference=float("inf"), is_equal=False, first_difference=words
        )
    counted = _counted(trained, batch, want.shape)
    difference = numpy.where(counted, numpy.abs(want - got), 0.0)
    off = counted & ~(difference <= ATOL + RTOL * numpy.abs(want))  # a NaN is off
    return ShapeParity(
        shape=shape,
        side=side,
        max_difference=float(numpy.nanmax(difference)),
        is_equal=not off.any(),
        first_difference=_place(trained.output_name, off, want, got) if off.any() else "",
    )


def _counted(trained: Trained, batch: Batch, shape: tuple[int, ...]) -> Any:
    """Return which values mean something: at padding, a model's answers by token are anything."""
    if trained.kind == "classification":
        return numpy.ones(shape, dtype=bool)
    mask = batch["attention_mask"].numpy().astype(bool)
    return numpy.broadcast_to(mask[..., None], shape)


def _place(name: str, off: Any, want: Any, got: Any) -> str:
    at = tuple(int(one) for one in numpy.argwhere(off)[0])
    return f"{name}{list(at)}: torch {want[at]:.6g}, ONNX {got[at]:.6g}"


class AgreementCount:
    """Counts on real texts whether both say the same: the same class, for every text or token."""

    def __init__(self, trained: Trained) -> None:
        self._trained = trained
        self._samples = self._answers = self._apart = 0
        self._most, self._first = 0.0, ""

    def add(self, batch: Batch, want: Any, got: Any) -> None:
        """Count a batch: torch's output and the file's, numpy."""
        counted = _counted(self._trained, batch, want.shape)
        self._most = max(self._most, float(numpy.where(counted, numpy.abs(want - got), 0.0).max()))
        unequal = _apart(self._trained, want, got)
        counted = counted[..., 0] if unequal.ndim < want.ndim else counted
        unequal &= counted
        if unequal.any() and not self._first:
            self._first = f"text {self._samples + int(numpy.argwhere(unequal)[0][0]) + 1}"
        self._samples += len(want)
        self._answers += int(counted.sum())
        self._apart += int(unequal.sum())

    def result(self) -> Agreement | None:
        """Return what was counted; None: no text was."""
        if not self._samples:
            return None
        return Agreement(
            samples=self._samples, answers=self._answers, disagreements=self._apart, max_difference=self._most,
            first_disagreement=self._first,
        )  # fmt: skip


def _apart(trained: Trained, want: Any, got: Any) -> Any:
    """Return where the answers part: another class, another yes or no, or (numbers) more than rounding.

    Two classes that torch itself holds equal up to rounding are the same answer.
    """
    if trained.problem == "multi_label_classification":
        return ((want > 0) != (got > 0)) & (numpy.abs(want) > ATOL)
    if trained.problem == "regression" or trained.kind == "features":
        return ~(numpy.abs(want - got) <= ATOL + RTOL * numpy.abs(want))
    theirs = numpy.nan_to_num(got, nan=-numpy.inf).argmax(-1)[..., None]
    margin = want.max(-1) - numpy.take_along_axis(want, theirs, -1)[..., 0]
    return margin > ATOL + RTOL * numpy.abs(want.max(-1))
