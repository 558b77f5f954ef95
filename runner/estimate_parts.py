"""The pieces of the memory arithmetic, each one number with its reason: what is kept, what is copied, what passes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runner.adapter_widths import adapter_inputs, keeps_every_input
from runner.trained_parts import still, trainable_parameters

if TYPE_CHECKING:
    from runner.memory_request import MemoryRequest
    from runner.model_shapes import Shape

FP32, LOW = 4, 2
BLOCK_SCORES = 1 << 20
"""The CPU's attention with dropout has so many scores in flight at a time, or those of one head (runner/blocked_attention.py)."""
BLOCK_8BIT = 256
"""Values that share one fp32 scale in an 8-bit optimizer's state (bitsandbytes)."""
ID_BYTES = 8 * 4
"""Ids, mask, segments and positions of a token: int64 each."""


class Vocabulary(NamedTuple):
    """Bytes that the output layer over the vocabulary takes."""

    in_forward: int
    in_backward: int
    tied_gradient: int
    """A tied embedding gets a second gradient, which is added to the first."""


def is_autocast(request: MemoryRequest) -> bool:
    return request.precision in ("bf16", "fp16")


def weight_width(request: MemoryRequest) -> int:
    """Bytes of a weight, a gradient and a moment."""
    return LOW if request.precision == "bf16-pure" else FP32


def compute_width(request: MemoryRequest) -> int:
    """Bytes of a value that a matrix product reads or writes."""
    return FP32 if request.precision == "fp32" else LOW


def tokens(request: MemoryRequest) -> int:
    return request.batch_size * request.sequence_length


def uses_sdpa(request: MemoryRequest, shape: Shape) -> bool:
    return shape.has_sdpa and request.attention != "eager"


def gradient_bytes(request: MemoryRequest, shape: Shape) -> int:
    return weight_width(request) * trainable_parameters(request, shape)


def optimizer_bytes(request: MemoryRequest, shape: Shape) -> int:
    """Two moments for Adam, none for plain SGD, a row and a column of each matrix for Adafactor."""
    trained, width = trainable_parameters(request, shape), weight_width(request)
    if request.optimizer == "adamw-8bit":
        return 2 * trained + 2 * FP32 * trained // BLOCK_8BIT
    if request.optimizer == "adafactor":
        return FP32 * (shape.layers * 6 * (2 * shape.hidden + shape.inner) + shape.vocabulary)
    return {"sgd": 0, "sgd-momentum": 1}.get(request.optimizer, 2) * width * trained


def optimizer_copies(request: MemoryRequest, shape: Shape) -> int:
    """Foreach kernels take the root of all second moments at once; loops work on one matrix at a time."""
    width = weight_width(request)
    largest = width * max(shape.vocabulary * shape.hidden, shape.hidden * shape.inner)
    if request.lora_rank:
        largest = width * request.lora_rank * max(shape.hidden, shape.inner)
    copies = {
        "adamw-foreach": gradient_bytes(request, shape),
        "adamw-loop": largest,
        "adafactor": 2 * largest,
    }
    return copies.get(request.optimizer, 0)


def layers_that_keep(request: MemoryRequest, shape: Shape) -> int:
    """Return how many layers keep something for a backward pass: all but those below everything that moves."""
    return shape.layers if request.lora_rank else shape.layers - still(request, shape).lowest


def low_weight_bytes(request: MemoryRequest, shape: Shape, gathered: int | None = None) -> int:
    """Under autocast every matrix that is multiplied with has a 16-bit copy until its backward is done, if it has one.

    ``gathered``: so many layers are on the card at a time, and no copy outlives its layer; None: all are.
    """
    if not is_autocast(request):
        return 0
    head = shape.head_parameters
    if request.task in ("causal-lm", "masked-lm") and shape.head_is_tied:
        head += shape.vocabulary * shape.hidden
    copied = min(shape.distinct_layers, layers_that_keep(request, shape))
    layers = copied if gathered is None else min(gathered, copied)
    return LOW * (layers * shape.layer_parameters + head)


def activations_per_layer(request: MemoryRequest, shape: Shape) -> int:
    """Bytes that one layer keeps for the backward pass, whole batch."""
    kept, h, i = shape.kept, shape.hidden, shape.inner
    low = compute_width(request)
    drops = request.lora_rank and request.lora_dropout
    adapted = request.lora_rank and (drops or not keeps_every_input(shape, request.lora_targets))
    if request.precision == "fp32":
        wide = FP32 * h * (kept.lora_fp32 if adapted else kept.fp32)
    elif is_autocast(request):
        full, half = (kept.lora_full, kept.lora_low) if adapted else (kept.mixed_full, kept.mixed_low)
        wide = h * (FP32 * full + LOW * half)
    else:
        low_values = kept.lora_fp32 - kept.pure_full if adapted else kept.pure_low
        wide = h * (FP32 * kept.pure_full + LOW * low_values)
    inner = low * i * (kept.lora_inner if adapted else kept.inner)
    masks = h * kept.dropout_masks * mask_width(request) if shape.has_dropout else 0
    if drops:  # each adapter keeps what it dropped of its input, and no projection the input itself
        masks += adapter_inputs(shape, request.lora_targets) * (low + mask_width(request))
    return int(tokens(request) * (wide + inner + masks)) + attention_bytes(request, shape)


def mask_width(request: MemoryRequest) -> int:
    """Dropout keeps a byte a value on CUDA, a factor of the value's own type on the CPU."""
    return 1 if request.device == "cuda" else compute_width(request)


def attention_bytes(request: MemoryRequest, shape: Shape) -> int:
    """Bytes of one layer that grow with the square of the length.

    SDPA keeps only a number a row, and the padding mask as added values. Eager keeps the probabilities (in fp32 where
    CUDA's autocast takes the softmax), with dropout once more and its mask.
    """
    low, pairs = compute_width(request), tokens(request) * request.sequence_length
    if uses_sdpa(request, shape):
        return pairs * low + FP32 * tokens(request) * shape.heads
    on_cuda = request.device == "cuda"
    probability = FP32 if is_autocast(request) and on_cuda else low
    values = probability if probability == low and not shape.has_attention_dropout else probability + low
    if shape.has_attention_dropout:
        values += mask_width(request)
    total = pairs * shape.heads * values
    if shape.relative_positions:  # queries times positions, both ways, and the position table once a sample
        rows = shape.relative_positions
        total += 2 * low * shape.heads * rows * tokens(request)
        total += 2 * low * rows * shape.hidden * request.batch_size
    return total


def outer_activations(request: MemoryRequest, shape: Shape) -> int:
    """Before the first layer and behind the last: norms' inputs, a dropout mask, ids, and the padding mask."""
    width = weight_width(request)
    masks = mask_width(request) if shape.has_dropout else 0
    head = 4 * width if request.task == "masked-lm" else 0
    return (
        tokens(request) * (shape.hidden * (2 * width + masks + head) + ID_BYTES)
        + tokens(request) * request.sequence_length
    )


def vocabulary_bytes(request: MemoryRequest, shape: Shape) -> Vocabulary:
    """Logits as they come, in fp32, and their log-softmax; in the backward the last and two gradients of its size."""
    if request.task not in ("causal-lm", "masked-lm"):
        return Vocabulary(0, 0, 0)
    entries = tokens(request) * shape.vocabulary
    low = compute_width(request)
    first = low + FP32 if low == FP32 else low + 2 * FP32
    tied = weight_width(request) * shape.vocabulary * shape.hidden if shape.head_is_tied else 0
    return Vocabulary(entries * first, entries * 3 * FP32, 0 if request.lora_rank else tied)


def transient_bytes(request: MemoryRequest, shape: Shape) -> int:
    """What lives only while one layer is computed: the gradient of its widest value, or of its probabilities."""
    low = compute_width(request)
    feed_forward = tokens(request) * (low * shape.inner + 2 * FP32 * shape.hidden)
    if uses_sdpa(request, shape):
        return max(feed_forward, _block_bytes(request, shape))
    pairs = tokens(request) * request.sequence_length * shape.heads
    freed = low * tokens(request) * (shape.kept.inner * shape.inner)
    return max(feed_forward, 2 * FP32 * pairs - freed)


def _block_bytes(request: MemoryRequest, shape: Shape) -> int:
    """A block's probabilities, factors, their product and two gradients, with 16 random bits a score."""
    if request.device == "cuda" or not shape.has_attention_dropout:
        return 0
    pairs = tokens(request) * request.sequence_length * shape.heads
    scores = min(pairs, max(BLOCK_SCORES, request.sequence_length**2))
    return scores * (5 * compute_width(request) + 2)
