"""What can be turned on to take less memory, in the order of least loss of speed. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from doctor.card_choice import largest_batch, replace, with_micro_batch
from doctor.card_state import CardState
from doctor.corrected import scaled_peak
from runner.capability import parse_capability
from runner.estimate import MemoryRequest, estimate
from runner.model_shapes import Shape, shape_of
from runner.step_request import padded
from runner.text import Text, t

LORA_RANK = 8
"""peft's default."""
SHARDINGS = ("ddp", "zero1", "zero2", "zero3")
"""Each shares out one piece more."""
BUSY_TOKENS = {"cuda": 4096, "cpu": 256}
"""Of a micro-batch that keeps a device busy: halving it down to here costs next to nothing. An assumption."""

Change = Callable[[MemoryRequest], MemoryRequest | None]


class Lever(NamedTuple):
    title: Callable[[MemoryRequest], Text]
    change: Change
    """None: it is on already, or there is no such thing here."""
    loses: bool = True
    """Speed, or equality of the numbers: taken only where nothing else does."""
    setting: Callable[[MemoryRequest], str] | None = None
    """What a profile says for it; None: ``doctor run`` has no such thing."""


def levers(
    card: CardState, factor: float = 1.0, host_free_bytes: int | None = None, by_profile: bool = False
) -> tuple[Lever, ...]:
    """Return every lever, first what loses no speed, last what changes the training or waits for PCIe.

    ``by_profile``: those alone that a profile can turn on.
    """
    split, smallest = _micro_batches(card, factor)
    found = (
        Lever(lambda _: t("fused AdamW in place of foreach: no copy of all weights"), _fused, False, lambda _: "train.fused=true"),
        Lever(lambda _: t("SDPA in place of eager attention: no matrix of length x length is kept"), _sdpa, False, lambda _: "model.attention=sdpa"),
        Lever(_half_title, _half(card), False, lambda one: f"train.precision={one.precision}"),
        Lever(lambda _: t("ZeRO-1: each card keeps a share of the optimizer's states; as much is sent as before"), _sharded("zero1"), False),
        Lever(lambda _: t("ZeRO-2 (FSDP's SHARD_GRAD_OP): gradients are shared out too"), _sharded("zero2")),
        Lever(accumulated, split, True, _tokens),
        Lever(lambda _: t("gradient checkpointing: one more forward pass in each backward"), _checkpointing, True, lambda _: "model.gradient_checkpointing=true"),
        Lever(lambda _: t("8-bit AdamW (bitsandbytes): the moments in a byte each; the numbers change slightly"), _eight_bit),
        Lever(lambda _: t("ZeRO-3 (FSDP's FULL_SHARD): weights are shared out too, and gathered layer by layer: half as much again is sent"), _sharded("zero3"), True, lambda _: "parallel.strategy=fsdp"),
        Lever(accumulated, smallest, True, _tokens),
        *(_offloads(host_free_bytes) if by_profile else ()),
        Lever(lambda one: t("LoRA of rank {rank}: only adapters are trained, which is another training", rank=one.lora_rank), _lora, True, _lora_setting),
        Lever(lambda _: t("the frozen weights in bf16 too: nothing updates them"), _frozen_low(card)),
        Lever(accumulated, smallest, True, _tokens),
        *(() if by_profile else (Lever(lambda _: t("optimizer states in the host's memory (ZeRO-Offload): an update waits for PCIe"), _offload),)),
    )  # fmt: skip
    return tuple(one for one in found if one.setting or not by_profile)


def _offloads(host_free_bytes: int | None) -> tuple[Lever, ...]:
    """What ``doctor run`` keeps in the host's memory, where that has room; the numbers stay the same."""

    def within(change: Change) -> Change:
        def checked(request: MemoryRequest) -> MemoryRequest | None:
            changed = change(request)
            short = changed and host_free_bytes is not None and estimate(changed).host_bytes > host_free_bytes
            return None if short else changed

        return checked

    return (
        Lever(lambda _: t("optimizer states in the host's memory (ZeRO-Offload): an update waits for PCIe"), within(_offload_alone), True, lambda _: "train.offload=optimizer"),
        Lever(lambda _: t("parameters in the host's memory too, one block on the card at a time: every pass waits for PCIe"), within(_offload_parameters), True, lambda _: "train.offload=parameters"),
    )  # fmt: skip


def _micro_batches(card: CardState, factor: float) -> tuple[Change, ...]:
    """Return what cuts a batch in parts that fit: as long as a part keeps the device busy, and down to one sample."""

    def largest(request: MemoryRequest) -> int:
        parts = replace(
            request, accumulation=max(2, request.accumulation)
        )  # gradients are kept between parts
        return largest_batch(parts, card.free_bytes, lambda batch: scaled_peak(replace(parts, batch_size=batch), factor))  # fmt: skip

    def split(request: MemoryRequest) -> MemoryRequest | None:
        busy = max(1, BUSY_TOKENS[request.device] // request.sequence_length)
        return with_micro_batch(request, max(busy, largest(request))) if request.batch_size > busy else None

    def smallest(request: MemoryRequest) -> MemoryRequest | None:
        return with_micro_batch(request, max(1, largest(request))) if request.batch_size > 1 else None

    return split, smallest


def accumulated(request: MemoryRequest) -> Text:
    """The title of every lever that cuts the batch in parts."""
    return t("micro-batches of {micro}, accumulated {times} {times:time|times}: the same update", micro=request.batch_size, times=request.accumulation)  # fmt: skip


def _tokens(request: MemoryRequest) -> str:
    """As a limit on tokens: short samples go many at a time all the same."""
    return f"train.micro_batch_tokens={request.batch_size * padded(request.sequence_length)}"


def _lora_setting(request: MemoryRequest) -> str:
    return f"model.lora={{rank={request.lora_rank}}}"


def _shape(request: MemoryRequest) -> Shape:
    return shape_of(request.config, request.task, request.num_labels)


def _fused(request: MemoryRequest) -> MemoryRequest | None:
    return replace(request, optimizer="adamw") if request.optimizer == "adamw-foreach" else None


def _sdpa(request: MemoryRequest) -> MemoryRequest | None:
    eager = request.attention == "eager" and _shape(request).has_sdpa
    return replace(request, attention="sdpa") if eager else None


def _half(card: CardState) -> Callable[[MemoryRequest], MemoryRequest | None]:
    """bf16 from compute capability 8.0 on, fp16 on tensor cores before it, nothing where lower precision is only slower."""
    capability = parse_capability(card.compute_capability) or (0, 0)

    def half(request: MemoryRequest) -> MemoryRequest | None:
        able = card.has_bf16 if request.device == "cpu" else capability >= (7, 0)
        if request.precision != "fp32" or not able:
            return None
        return replace(
            request, precision="bf16" if request.device == "cpu" or capability >= (8, 0) else "fp16"
        )

    return half


def _half_title(request: MemoryRequest) -> Text:
    if request.device == "cpu":
        return t("bf16 autocast: half of the activations; this CPU multiplies bf16 in hardware")
    return t("{precision} autocast: half of the activations, and faster on tensor cores", precision=request.precision)  # fmt: skip


def _sharded(stage: str) -> Callable[[MemoryRequest], MemoryRequest | None]:
    def shard(request: MemoryRequest) -> MemoryRequest | None:
        later = SHARDINGS.index(stage) > SHARDINGS.index(request.sharding)
        return replace(request, sharding=stage) if request.cards > 1 and later else None

    return shard


def _checkpointing(request: MemoryRequest) -> MemoryRequest | None:
    if request.gradient_checkpointing or not _shape(request).has_checkpointing:
        return None
    return replace(request, gradient_checkpointing=True)


def _eight_bit(request: MemoryRequest) -> MemoryRequest | None:
    able = request.device == "cuda" and request.optimizer in ("adamw", "adamw-foreach")
    return replace(request, optimizer="adamw-8bit") if able else None


def _lora(request: MemoryRequest) -> MemoryRequest | None:
    return None if request.lora_rank or request.freeze else replace(request, lora_rank=LORA_RANK)


def _frozen_low(card: CardState) -> Callable[[MemoryRequest], MemoryRequest | None]:
    capability = parse_capability(card.compute_capability) or (0, 0)

    def low(request: MemoryRequest) -> MemoryRequest | None:
        able = request.lora_rank and request.precision != "bf16-pure" and capability >= (8, 0)
        return replace(request, precision="bf16-pure") if able else None

    return low


def _offload(request: MemoryRequest) -> MemoryRequest | None:
    there = request.offload or request.offload_parameters
    return None if there or request.device != "cuda" or request.spread > 1 else replace(request, offload=True)


def _offload_alone(request: MemoryRequest) -> MemoryRequest | None:
    """As ``doctor run`` can: without a loss scaler, which looks at gradients on the card."""
    return None if request.precision == "fp16" else _offload(request)


def _offload_parameters(request: MemoryRequest) -> MemoryRequest | None:
    """Copies of a model in several processes do not go with it, parts of one do."""
    copies = request.cards > 1 and request.sharding != "zero3"
    if (
        request.offload_parameters
        or request.device != "cuda"
        or request.spread > 1
        or copies
        or request.precision == "fp16"
    ):
        return None
    return replace(request, offload=False, offload_parameters=True, gradient_checkpointing=True)
