"""Which parameters of a model an update moves, counted by where they lie: adapters, or all but what is frozen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runner.adapter_widths import adapter_width
from runner.frozen_parts import Still, still_parts
from runner.sections import TEXT_ONLY

if TYPE_CHECKING:
    from runner.memory_request import MemoryRequest
    from runner.model_shapes import Shape


class Trained(NamedTuple):
    embedding: int
    layers: int
    head: int

    @property
    def total(self) -> int:
        return self.embedding + self.layers + self.head


def still(request: MemoryRequest, shape: Shape) -> Still:
    return still_parts(shape.model_type, shape.layers, request.freeze)


def adapter_parameters(request: MemoryRequest, shape: Shape) -> int:
    return request.lora_rank * adapter_width(shape, request.lora_targets) * shape.layers


def trained_parts(request: MemoryRequest, shape: Shape) -> Trained:
    """With LoRA: the adapters, and the head of a classifier. Else all but what stands still."""
    if request.lora_rank:
        head = 0 if request.task in TEXT_ONLY else shape.head_parameters
        return Trained(0, adapter_parameters(request, shape), head)
    parts = still(request, shape)
    layers = shape.distinct_layers - min(parts.layers, shape.distinct_layers)
    return Trained(
        0 if parts.embedding else shape.embedding_parameters,
        layers * shape.layer_parameters,
        0 if parts.head else shape.head_parameters,
    )


def trainable_parameters(request: MemoryRequest, shape: Shape) -> int:
    return trained_parts(request, shape).total
