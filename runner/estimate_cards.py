"""How several cards share one training's memory: copies (DDP), parts (ZeRO, FSDP), or layers one after another. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.estimate_parts import gradient_bytes, weight_width
from runner.trained_parts import adapter_parameters, trained_parts

if TYPE_CHECKING:
    from runner.memory_request import MemoryRequest
    from runner.model_shapes import Shape

Phases = dict[str, dict[str, int]]

GATHERED_LAYERS = 2
"""ZeRO-3 and FSDP: one layer is computed while the next is fetched."""


def split(request: MemoryRequest, stage: str) -> int:
    """Return among how many cards a piece is divided that ``stage`` and those above it divide."""
    order = ("ddp", "zero1", "zero2", "zero3")
    return request.cards if order.index(request.sharding) >= order.index(stage) else 1


def is_gathered(request: MemoryRequest) -> bool:
    """Is a layer whole on a card only while it is computed (ZeRO-3, FSDP)? Its 16-bit copy goes with it."""
    return request.cards > 1 and request.sharding == "zero3"


def has_buckets(request: MemoryRequest) -> bool:
    """Does DDP hold room for every gradient, all the time?"""
    return request.cards > 1 and request.sharding == "ddp"


def weights_and_gradients(request: MemoryRequest, shape: Shape) -> tuple[int, int]:
    """Return the bytes of weights and gradients on one card.

    ZeRO-3 / FSDP gathers two layers at a time (one is computed, one fetched ahead) and the embedding whole. DDP holds
    every gradient twice, once in the buckets that it sends, unless ``gradient_as_bucket_view`` is on.
    """
    width = weight_width(request)
    weights = width * (shape.parameters + adapter_parameters(request, shape))
    gradients = gradient_bytes(request, shape)
    if is_gathered(request):
        gathered = width * (GATHERED_LAYERS * shape.layer_parameters + shape.embedding_parameters)
        return weights // request.cards + gathered, gradients // request.cards
    if has_buckets(request):
        return weights, gradients if request.bucket_view else 2 * gradients
    return weights, gradients // split(request, "zero2")


def gradients_between_passes(request: MemoryRequest, shape: Shape, gradients: int) -> int:
    """Return what of the gradients is there while a forward pass runs."""
    if request.accumulation > 1:
        return gradients
    return gradient_bytes(request, shape) if has_buckets(request) else 0


def gradients_of_layers(request: MemoryRequest, shape: Shape, gradients: int) -> int:
    """Return what of the gradients is there when the backward pass reaches the first layer: all but the embedding's."""
    if shape.head_is_tied or request.lora_rank:
        return gradients
    trained = trained_parts(request, shape)
    return gradients * (trained.layers + trained.head) // max(1, trained.total)


def fullest_cards_share(phases: Phases, request: MemoryRequest, shape: Shape) -> Phases:
    """Return what the fullest of several cards holds over which a model's layers are spread, one after another.

    accelerate fills them to about equal weights, by whole layers: one layer more than an equal share at most.
    """

    def share(name: str, size: int) -> int:
        if name not in ("weights", "optimizer", "gradients", "activations"):
            return size  # within one layer, or on the card with the head
        return size // request.spread + size // (shape.layers + 1)

    return {
        phase: {name: share(name, size) for name, size in parts.items()} for phase, parts in phases.items()
    }
