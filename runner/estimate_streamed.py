"""What a card holds where the parameters lie in the host's memory (``train.offload = "parameters"``): one block at a time.

A module takes copies of its weights for its passes, and activations are recomputed block by block, so that the copies of a
block are there twice: in its forward pass one module at a time, in its backward pass all together (:mod:`runner.offload`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.estimate_parts import (
    FP32,
    LOW,
    activations_per_layer,
    is_autocast,
    outer_activations,
    tokens,
    transient_bytes,
    vocabulary_bytes,
    weight_width,
)
from runner.trained_parts import trained_parts

if TYPE_CHECKING:
    from runner.memory_request import MemoryRequest
    from runner.model_shapes import Shape


def is_streamed(request: MemoryRequest) -> bool:
    """On a CPU host and device share one memory: there is nothing to stream from."""
    return request.offload_parameters and request.device == "cuda"


def streamed_phases(request: MemoryRequest, shape: Shape) -> dict[str, dict[str, int]]:
    """Return the tensor bytes on the card by part, for each phase of an update that can be its peak."""
    width = weight_width(request)
    copies = LOW if is_autocast(request) else width  # of a cast copy the one it was made from is gone at once
    tied = shape.vocabulary * shape.hidden if shape.head_is_tied else 0
    head, embedding = shape.head_parameters + tied, shape.embedding_parameters
    trained = trained_parts(request, shape)
    logits, transient = vocabulary_bytes(request, shape), transient_bytes(request, shape)
    each, outer = activations_per_layer(request, shape), outer_activations(request, shape)
    kept = outer + tokens(request) * shape.hidden * width * shape.layers
    gradient_in_work = FP32 * shape.hidden * shape.inner if trained.layers else 0
    return {
        "forward (embeddings)": {"weights": width * embedding, "activations": outer},
        "forward": {"weights": copies * head, "activations": kept, "logits": logits.in_forward, "workspace": transient},
        "backward (loss)": {
            "weights": copies * head, "gradients": width * head if trained.head or tied else 0, "activations": kept,
            "logits": logits.in_backward,
        },
        "backward": {
            "weights": copies * shape.layer_parameters, "gradients": gradient_in_work, "activations": kept + each, "workspace": transient,
        },
        "backward (embeddings)": {"gradients": width * trained.embedding, "activations": outer},
    }  # fmt: skip
