"""Peak GPU memory of a training run by arithmetic: from a model's configuration alone, without torch.

Memory is followed through the phases of an update (end of forward, start and end of backward, optimizer); the largest
phase is the peak, and its parts add up to it exactly. What is assumed rather than counted is a named constant below,
with its source. :mod:`runner.child.trace_memory` answers the same question by walking the model's own code.
"""

from __future__ import annotations

import msgspec

from runner.estimate_cards import (
    GATHERED_LAYERS,
    Phases,
    fullest_cards_share,
    gradients_between_passes,
    gradients_of_layers,
    is_gathered,
    split,
    weights_and_gradients,
)
from runner.estimate_outside import Part, outside_parts, with_outside
from runner.estimate_parts import (
    activations_per_layer,
    gradient_bytes,
    layers_that_keep,
    low_weight_bytes,
    optimizer_bytes,
    optimizer_copies,
    outer_activations,
    transient_bytes,
    vocabulary_bytes,
    weight_width,
)
from runner.estimate_streamed import is_streamed, streamed_phases
from runner.memory_request import MemoryRequest, Optimizer, Precision, Sharding
from runner.model_shapes import Shape, shape_of
from runner.text import Text, t
from runner.trained_parts import trainable_parameters

__all__ = ["MemoryEstimate", "MemoryRequest", "Optimizer", "Precision", "Sharding", "estimate", "phase_parts"]

ARITHMETIC_ERROR = 0.15
"""How far this arithmetic may be off, of the tensors (benchmarks/memory.py holds it to that)."""


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


def phase_parts(request: MemoryRequest, shape: Shape) -> Phases:
    """Return the tensor bytes by part, for each phase of an update that can be its peak."""
    if is_streamed(request):
        return streamed_phases(request, shape)
    phases = _whole_phases(request, shape)
    return fullest_cards_share(phases, request, shape) if request.spread > 1 else phases


def _whole_phases(request: MemoryRequest, shape: Shape) -> Phases:
    weights, gradients = weights_and_gradients(request, shape)
    optimizer = _optimizer_here(request, shape) // split(request, "zero1")
    kept_gradients = gradients_between_passes(request, shape, gradients)
    low = low_weight_bytes(request, shape, gathered=GATHERED_LAYERS if is_gathered(request) else None)
    each, outer = activations_per_layer(request, shape), outer_activations(request, shape)
    boundary = request.batch_size * request.sequence_length * shape.hidden * weight_width(request)
    logits, transient = vocabulary_bytes(request, shape), transient_bytes(request, shape)
    checkpointed = request.gradient_checkpointing
    all_kept = outer + (boundary if checkpointed else each) * layers_that_keep(request, shape)
    in_work = low if is_gathered(request) else low // shape.layers
    low_now = in_work if checkpointed else low
    reached = each if layers_that_keep(request, shape) else 0
    one_layer = reached if checkpointed else 0
    last_gradients = max(kept_gradients, gradients_of_layers(request, shape, gradients))
    base = {"weights": weights, "optimizer": optimizer}
    return {
        "forward": base
        | {"gradients": kept_gradients, "activations": all_kept, "logits": logits.in_forward, "workspace": low + transient},
        "backward": base
        | {"gradients": kept_gradients, "activations": all_kept + one_layer, "logits": 0, "workspace": low_now + transient},
        "backward (loss)": base
        | {"gradients": kept_gradients, "activations": all_kept, "logits": logits.in_backward, "workspace": 0 if checkpointed else low},
        "backward (first layer)": base
        | {"gradients": last_gradients, "activations": outer + reached, "workspace": in_work + transient},
        "backward (embeddings)": base
        | {"gradients": gradients, "activations": outer, "workspace": logits.tied_gradient},
        "optimizer": base
        | {"gradients": gradients, "workspace": 0 if request.offload else optimizer_copies(request, shape) // split(request, "zero2")},
    }  # fmt: skip


def _optimizer_here(request: MemoryRequest, shape: Shape) -> int:
    """Return the optimizer's bytes on the device: with the update on the host none, unless that is the device."""
    if not request.offload:
        return optimizer_bytes(request, shape)
    return _masters_and_moments(request, shape) if request.device == "cpu" else 0


def _masters_and_moments(request: MemoryRequest, shape: Shape) -> int:
    return weight_width(request) * trainable_parameters(request, shape) + optimizer_bytes(request, shape)


def _host_bytes(request: MemoryRequest, shape: Shape) -> int:
    """Return what lies in the host's memory, of all cards together: they share one host.

    The moments, the weights that they update, and the gradients for it; where parameters lie there, those that stand still too.
    """
    if request.device == "cpu" or not (request.offload or request.offload_parameters):
        return 0
    found = _masters_and_moments(request, shape) + gradient_bytes(request, shape)
    if request.offload_parameters:
        found += weight_width(request) * (shape.parameters - trainable_parameters(request, shape))
    return found


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
    if name == "weights" and is_streamed(request):
        return t("copies of one block at a time: the parameters lie in the host's memory")
    return texts[name]
