"""The memory formula and the table of measured batches that tutorials hand on, beside ours, with what they leave out. Pure.

Formula: "memory = model parameters x 4 + batch x sequence length x hidden size x 8" (bytes). Table: RTX 3090, BERT-base
batch 32 at 10.2 GB, RoBERTa-large batch 8 at 22.1 GB; neither length nor precision is given.
"""

from __future__ import annotations

import msgspec

from doctor.tables import load
from runner.estimate import MemoryRequest, estimate
from runner.model_shapes import shape_of
from runner.text import Text, t

LENGTHS = (128, 256, 512)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the articles' table."""

    model: str
    batch_size: int
    claimed_gb: float
    """As they write it."""
    formula_bytes: int
    """The articles' own formula at 512 tokens."""
    ours_bytes: dict[str, int]
    """``fp32 128`` -> our expected peak with torch's default AdamW."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    formula_bytes: int
    ours_bytes: int
    """Expected peak."""
    accelerate_bytes: int
    """accelerate estimate-memory's figure for training with Adam, whatever batch and length."""
    left_out: tuple[Text, ...]
    table: tuple[Claim, ...]


def formula_bytes(request: MemoryRequest) -> int:
    """Return what the articles' formula gives."""
    shape = shape_of(request.config, request.task, request.num_labels)
    return shape.parameters * 4 + request.batch_size * request.sequence_length * shape.hidden * 8


def accelerate_rule_bytes(request: MemoryRequest) -> int:
    """Return what ``accelerate estimate-memory`` calls training with Adam: of the weights in fp32, 4 x for fp32 and 2 x for
    16 bits (accelerate 1.15, ``estimate_training_usage``: the largest of its figures)."""
    shape = shape_of(request.config, request.task, request.num_labels)
    return shape.parameters * 4 * (4 if request.precision == "fp32" else 2)


def compare(request: MemoryRequest) -> Comparison:
    return Comparison(
        formula_bytes=formula_bytes(request),
        ours_bytes=estimate(request).peak_bytes,
        accelerate_bytes=accelerate_rule_bytes(request),
        left_out=(
            t("the layers: it counts one hidden-wide value a token, not what every layer keeps for the backward pass"),
            t("gradients and Adam's two moments: 4 bytes a parameter hold the weights alone"),
            t("attention's length x length matrices, precision, checkpointing, accumulation, the optimizer's kind"),
            t("logits over the vocabulary, the CUDA context, what the allocator holds, what others hold on the card"),
        ),
        table=(
            _claim("bert-base", 32, 10.2),
            _claim("roberta-large", 8, 22.1),
        ),
    )  # fmt: skip


def _claim(name: str, batch: int, claimed: float) -> Claim:
    config = next(row["config"] for row in load("models")["model"] if name in row["aliases"])
    ours = {}
    for precision in ("fp32", "fp16"):
        for length in LENGTHS:
            request = MemoryRequest(
                config=config, batch_size=batch, sequence_length=length, precision=precision, optimizer="adamw-foreach"
            )  # fmt: skip
            ours[f"{precision} {length}"] = estimate(request).peak_bytes
    longest = MemoryRequest(config=config, batch_size=batch, sequence_length=LENGTHS[-1])
    return Claim(
        model=name,
        batch_size=batch,
        claimed_gb=claimed,
        formula_bytes=formula_bytes(longest),
        ours_bytes=ours,
    )
