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
    layers_that_keep,
    optimizer_bytes,
    tokens,
    weight_width,
)
from runner.model_shapes import Shape, shape_of
from runner.trained_parts import still, trainable_parameters

COMPUTE_SHARE = 0.5
"""Of the tensor cores' dense rate that training's matrix products reach (model FLOPs utilisation of 40-60 % is common)."""
BANDWIDTH_SHARE = 0.75
"""Of the memory's rate that element-wise kernels reach."""
TOUCHES = 3.0
"""How often a kept byte crosses the memory bus: written once, read at least once forward and once backward. An assumption."""
NOMINAL_SHARE = 0.93
"""Of the nominal memory that a process can have: ECC and the driver keep up to 6 % (a 16 GB T4 shows 15,360 MiB)."""
LINK_BYTES_PER_S = 8e9
"""Between card and host: PCIe as copies of memory that is not page-locked see it, which these are. An assumption."""
HOST_BYTES_PER_S = 30e9
"""At which the host's AdamW goes through its states. An assumption: two channels of DDR4; servers have more."""
A_MULTIPLY_AND_AN_ADD = 2
"""Operations a parameter, token and pass: forward, gradient of the input, gradient of the weight (Kaplan et al. 2020: 6 in all)."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """One update of one card."""

    seconds: float
    compute_s: float
    traffic_s: float
    host_s: float = 0.0
    """Waiting for the host: copies over PCIe and the update there, where something is offloaded."""

    @property
    def bound_by(self) -> str:
        return "compute" if self.compute_s >= self.traffic_s else "memory"


def model_flops(request: MemoryRequest, shape: Shape) -> float:
    """Return the operations that one micro-batch takes of itself: those of its step, with nothing computed twice."""
    return step_flops(msgspec.structs.replace(request, gradient_checkpointing=False), shape)


def step_flops(request: MemoryRequest, shape: Shape) -> float:
    """Return the operations that a card carries out for one micro-batch, those that recomputation repeats among them.

    Frozen weights need no gradient of their own, and below everything that moves nothing goes back at all.
    """
    head = shape.head_parameters + (shape.vocabulary * shape.hidden if shape.head_is_tied else 0)
    reached, parts = layers_that_keep(request, shape), still(request, shape)
    moved = 0 if request.lora_rank else shape.layers - parts.layers
    back = reached + moved + (reached if request.gradient_checkpointing else 0)
    passes_of_head = 2 if request.lora_rank or parts.head else 3
    matrices = (shape.layers + back) * shape.layer_parameters + passes_of_head * head
    attention = 2 * request.sequence_length * shape.hidden  # q k^T and probabilities v
    passes_of_attention = shape.layers + (3 if request.gradient_checkpointing else 2) * reached
    return tokens(request) * A_MULTIPLY_AND_AN_ADD * (matrices + passes_of_attention * attention)


def step_bytes(request: MemoryRequest, shape: Shape) -> float:
    """Return the bytes that cross the memory bus in one micro-batch, without the update."""
    kept = TOUCHES * activations_per_layer(request, shape) * layers_that_keep(request, shape)
    return (
        kept * (4 / 3 if request.gradient_checkpointing else 1) + 3 * weight_width(request) * shape.parameters
    )


def update_bytes(request: MemoryRequest, shape: Shape) -> float:
    """Weights, gradients and states read, weights and states written."""
    trained = weight_width(request) * trainable_parameters(request, shape)
    return 3 * trained + 2 * optimizer_bytes(request, shape)


def is_on_host(request: MemoryRequest) -> bool:
    """Is the update made in the host's memory while the passes run on a card?"""
    return request.device == "cuda" and (request.offload or request.offload_parameters)


def host_seconds(request: MemoryRequest, shape: Shape) -> float:
    """Return how long an update waits for the host. Gradients go there and weights come back; where the parameters lie there,
    each weight comes for the forward pass and for the recomputed one, and its gradient goes back, in every micro-batch."""
    if not is_on_host(request):
        return 0.0
    trained = weight_width(request) * trainable_parameters(request, shape)
    crossing = 2 * trained
    if request.offload_parameters:
        crossing = request.accumulation * (2 * weight_width(request) * shape.parameters + trained)
    return crossing / LINK_BYTES_PER_S + update_bytes(request, shape) / HOST_BYTES_PER_S


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
    update = 0.0 if is_on_host(request) else update_bytes(request, shape)
    traffic = (times * step_bytes(request, shape) + update) / bandwidth
    host = host_seconds(request, shape)
    return StepTime(seconds=compute + traffic + host, compute_s=compute, traffic_s=traffic, host_s=host)
