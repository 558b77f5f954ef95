"""Peak GPU memory of a training run by arithmetic: from a model's configuration alone, without torch.

Memory is followed through the phases of an update (end of forward, start and end of backward, optimizer); the largest
phase is the peak, and its parts add up to it exactly. What is assumed rather than counted is a named constant below,
with its source. :mod:`runner.child.trace_memory` answers the same question by walking the model's own code.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runner.estimate_outside import Part, outside_parts, with_outside
from runner.estimate_parts import (
    activations_per_layer,
    gradient_bytes,
    low_weight_bytes,
    optimizer_bytes,
    optimizer_copies,
    outer_activations,
    trainable_parameters,
    transient_bytes,
    vocabulary_bytes,
    weight_width,
)
from runner.model_shapes import Shape, shape_of
from runner.text import Text, t

ARITHMETIC_ERROR = 0.15
"""How far this arithmetic may be off, of the tensors (benchmarks/memory.py holds it to that)."""

GATHERED_LAYERS = 2
"""ZeRO-3 and FSDP: one layer is computed while the next is fetched."""

Precision = Literal["fp32", "bf16", "fp16", "bf16-pure"]
Optimizer = Literal["adamw", "adamw-foreach", "adamw-loop", "adamw-8bit", "adafactor", "sgd", "sgd-momentum"]
Sharding = Literal["ddp", "zero1", "zero2", "zero3"]


class MemoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One training step, in full: what decides its memory."""

    config: dict[str, Any]
    task: str = "classification"
    num_labels: int = 2
    batch_size: int = 32
    """Micro-batch: samples a card sees at once."""
    sequence_length: int = 512
    precision: Precision = "fp32"
    """``bf16`` and ``fp16``: autocast over fp32 weights. ``bf16-pure``: weights, gradients and moments in bf16."""
    optimizer: Optimizer = "adamw"
    """``adamw``: the fused kernel; ``adamw-foreach``: torch's default on CUDA, with one more copy of all weights."""
    attention: Literal["auto", "sdpa", "eager"] = "auto"
    gradient_checkpointing: bool = False
    accumulation: int = 1
    lora_rank: int = 0
    device: Literal["cuda", "cpu"] = "cuda"
    cards: int = 1
    sharding: Sharding = "ddp"
    """With several cards: ``zero3`` is FSDP's full sharding."""
    offload: bool = False
    """Optimizer states (and the update) in the host's memory."""


class MemoryEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The peak of one card and what it is made of; ``parts`` add up to ``peak_bytes``."""

    source: str = "arithmetic"
    peak_bytes: int
    """What nvidia-smi would show for the process at its worst moment."""
    low_bytes: int
    high_bytes: int
    allocated_bytes: int
    """Tensors alone: ``torch.cuda.max_memory_allocated()``."""
    phase: str
    """In which the peak lies: forward, backward, optimizer."""
    phases: dict[str, int]
    """Tensor bytes of each phase."""
    parts: tuple[Part, ...]
    layers_bytes: tuple[int, ...]
    """What each layer keeps for the backward pass."""
    parameters: int
    trainable: int
    host_bytes: int = 0
    """Host memory that offloading takes."""


def estimate(request: MemoryRequest) -> MemoryEstimate:
    """Return the peak memory of a training run.

    Raises:
        runner.model_shapes.UnknownArchitecture: the arithmetic does not know this model.
    """
    shape = shape_of(request.config, request.task, request.num_labels)
    phases = phase_parts(request, shape)
    phase = max(phases, key=lambda name: sum(phases[name].values()))
    allocated = sum(phases[phase].values())
    tensors = (
        Part(name=name, size_bytes=size, why=_why(name, request, shape))
        for name, size in phases[phase].items()
        if size
    )
    parts = (*tensors, *outside_parts(request, allocated))
    low, high = with_outside(request, allocated * (1 - ARITHMETIC_ERROR), allocated * (1 + ARITHMETIC_ERROR))
    each = activations_per_layer(request, shape)
    return MemoryEstimate(
        peak_bytes=sum(part.size_bytes for part in parts), low_bytes=low, high_bytes=high,
        allocated_bytes=allocated, phase=phase.partition(" ")[0],
        phases={name: sum(sizes.values()) for name, sizes in phases.items()}, parts=parts,
        layers_bytes=(each,) * shape.layers, parameters=shape.parameters,
        trainable=trainable_parameters(request, shape),
        host_bytes=_host_bytes(request, shape),
    )  # fmt: skip


def phase_parts(request: MemoryRequest, shape: Shape) -> dict[str, dict[str, int]]:
    """Return the tensor bytes by part, for each phase of an update that can be its peak."""
    weights, gradients = _sharded(request, shape)
    optimizer = 0 if request.offload else optimizer_bytes(request, shape) // _split(request, "zero1")
    kept_gradients = gradients if request.accumulation > 1 else 0
    low = low_weight_bytes(request, shape, gathered=GATHERED_LAYERS if _is_gathered(request) else None)
    each, outer = activations_per_layer(request, shape), outer_activations(request, shape)
    boundary = request.batch_size * request.sequence_length * shape.hidden * weight_width(request)
    logits, transient = vocabulary_bytes(request, shape), transient_bytes(request, shape)
    checkpointed = request.gradient_checkpointing
    all_kept = outer + (boundary * shape.layers if checkpointed else each * shape.layers)
    one_layer = each if checkpointed else 0
    in_work = low if _is_gathered(request) else low // shape.layers
    low_now = in_work if checkpointed else low
    in_layers = gradients * shape.distinct_layers * shape.layer_parameters // max(1, shape.parameters)
    last_gradients = gradients if shape.head_is_tied or request.lora_rank else in_layers
    base = {"weights": weights, "optimizer": optimizer}
    return {
        "forward": base
        | {"gradients": kept_gradients, "activations": all_kept, "logits": logits.in_forward, "workspace": low + transient},
        "backward": base
        | {"gradients": kept_gradients, "activations": all_kept + one_layer, "logits": 0, "workspace": low_now + transient},
        "backward (loss)": base
        | {"gradients": kept_gradients, "activations": all_kept, "logits": logits.in_backward, "workspace": 0 if checkpointed else low},
        "backward (first layer)": base
        | {"gradients": last_gradients, "activations": outer + each, "workspace": in_work + transient},
        "backward (embeddings)": base
        | {"gradients": gradients, "activations": outer, "workspace": logits.tied_gradient},
        "optimizer": base
        | {"gradients": gradients, "workspace": 0 if request.offload else optimizer_copies(request, shape) // _split(request, "zero2")},
    }  # fmt: skip


def _split(request: MemoryRequest, stage: str) -> int:
    """Return among how many cards a piece is divided that ``stage`` and those above it divide."""
    order = ("ddp", "zero1", "zero2", "zero3")
    return request.cards if order.index(request.sharding) >= order.index(stage) else 1


def _is_gathered(request: MemoryRequest) -> bool:
    """Is a layer whole on a card only while it is computed (ZeRO-3, FSDP)? Its 16-bit copy goes with it."""
    return request.cards > 1 and request.sharding == "zero3"


def _sharded(request: MemoryRequest, shape: Shape) -> tuple[int, int]:
    """Return the bytes of weights and gradients on one card.

    ZeRO-3 / FSDP gathers two layers at a time (one is computed, one fetched ahead) and the embedding whole. DDP holds
    every gradient twice: once in the buckets that it sends (``gradient_as_bucket_view`` is off by default).
    """
    width = weight_width(request)
    weights, gradients = width * shape.parameters, gradient_bytes(request, shape)
    if request.lora_rank:
        weights += width * request.lora_rank * shape.adapted_width * shape.layers
    if _is_gathered(request):
        gathered = width * (GATHERED_LAYERS * shape.layer_parameters + shape.embedding_parameters)
        return weights // request.cards + gathered, gradients // request.cards
    if request.cards > 1 and request.sharding == "ddp":
        return weights, 2 * gradients
    return weights, gradients // _split(request, "zero2")


def _host_bytes(request: MemoryRequest, shape: Shape) -> int:
    """Moments, and the gradients they are updated with, of all cards together: they share one host."""
    if not request.offload:
        return 0
    return optimizer_bytes(request, shape) + gradient_bytes(request, shape)


def _why(name: str, request: MemoryRequest, shape: Shape) -> Text:
    width = weight_width(request)
    texts = {
        "weights": t("{count} M parameters, {width} bytes each", count=round(shape.parameters / 1e6, 1), width=width),
        "gradients": t("{count} M trained parameters, {width} bytes each",
                       count=round(trainable_parameters(request, shape) / 1e6, 1), width=width),
        "optimizer": t("the states of {optimizer}", optimizer=request.optimizer),
        "activations": t("{layers} {layers:layer|layers} x {tokens} {tokens:token|tokens}, kept for the backward pass", layers=shape.layers,
                         tokens=request.batch_size * request.sequence_length),
        "logits": t("{tokens} {tokens:token|tokens} x {vocabulary} {vocabulary:entry|entries}, in fp32 for the loss",
                    tokens=request.batch_size * request.sequence_length, vocabulary=shape.vocabulary),
        "workspace": t("16-bit copies of weights under autocast, and what lives only within one layer or update"),
    }  # fmt: skip
    return texts[name]
