"""How long a training step takes on a card one does not have: operations and bytes over what the card can do. Pure.

Kernels run one after another, so the time of the matrix products and the time of the memory traffic are added. It is a
floor of a well-fed step: no waiting for data, no Python between small kernels. Good for choosing between cards.
"""

from __future__ import annotations

from typing import Any

import msgspec

from runner.estimate import MemoryRequest
from runner.estimate_parts import (
    activations_per_layer,
    optimizer_bytes,
    tokens,
    trainable_parameters,
    weight_width,
)
from runner.model_shapes import Shape, shape_of

COMPUTE_SHARE = 0.5
"""Of the tensor cores' dense rate that training's matrix products reach (model FLOPs utilisation of 40-60 % is common)."""
BANDWIDTH_SHARE = 0.75
"""Of the memory's rate that element-wise kernels reach."""
TOUCHES = 3.0
"""How often a kept byte crosses the memory bus: written once, read at least once forward and once backward. An assumption."""
NOMINAL_SHARE = 0.93
"""Of the nominal memory that a process can have: ECC and the driver keep up to 6 % (a 16 GB T4 shows 15,360 MiB)."""
FORWARD, BACKWARD = 2, 4
"""Operations a parameter and token: a multiply and an add, and twice that for both gradients (Kaplan et al. 2020)."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """One update of one card."""

    seconds: float
    compute_s: float
    traffic_s: float

    @property
    def bound_by(self) -> str:
        return "compute" if self.compute_s >= self.traffic_s else "memory"


def step_flops(request: MemoryRequest, shape: Shape) -> float:
    """Return the operations of one micro-batch. Weights that are frozen need no gradient of their own."""
    matrices = shape.layers * shape.layer_parameters + shape.head_parameters
    if shape.head_is_tied:
        matrices += shape.vocabulary * shape.hidden
    passes = FORWARD + (FORWARD if request.lora_rank else BACKWARD)
    attention = 4 * shape.layers * request.sequence_length * shape.hidden  # q k^T and probabilities v, 2 each
    if request.gradient_checkpointing:
        passes += FORWARD
    return tokens(request) * (passes * matrices + passes / 2 * attention)


def step_bytes(request: MemoryRequest, shape: Shape) -> float:
    """Return the bytes that cross the memory bus in one micro-batch, without the update."""
    kept = TOUCHES * activations_per_layer(request, shape) * shape.layers
    return (
        kept * (4 / 3 if request.gradient_checkpointing else 1) + 3 * weight_width(request) * shape.parameters
    )


def update_bytes(request: MemoryRequest, shape: Shape) -> float:
    """Weights, gradients and states read, weights and states written."""
    trained = weight_width(request) * trainable_parameters(request, shape)
    return 3 * trained + 2 * optimizer_bytes(request, shape)


def step_time(request: MemoryRequest, card: dict[str, Any]) -> StepTime | None:
    """Return the time of one update on a row of gpus.toml; None: its rate is unknown, or fp32 was asked for.

    The table has rates of 16-bit tensor cores only; fp32 without TF32 runs beside them.
    """
    if request.precision == "fp32" or not card.get("tflops"):
        return None
    shape = shape_of(request.config, request.task, request.num_labels)
    bandwidth = card["bandwidth_gbs"] * 1e9 * BANDWIDTH_SHARE
    times = request.accumulation
    compute = times * step_flops(request, shape) / (card["tflops"] * 1e12 * COMPUTE_SHARE)
    traffic = (times * step_bytes(request, shape) + update_bytes(request, shape)) / bandwidth
    return StepTime(seconds=compute + traffic, compute_s=compute, traffic_s=traffic)
