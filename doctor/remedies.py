"""What to turn on until a run fits, in the order of least loss of speed, each with what it saves and what it costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from doctor.card_choice import largest_batch, replace, with_micro_batch
from doctor.card_state import CardState
from doctor.corrected import scaled_peak
from doctor.roofline import step_time
from doctor.tables.gpus import row_of
from runner.choices import parse_capability
from runner.estimate import MemoryRequest
from runner.model_shapes import shape_of
from runner.text import Text, t

WORTH = 0.01
"""What saves less of the peak is not worth a line."""
LORA_RANK = 8
"""peft's default."""
SHARDINGS = ("ddp", "zero1", "zero2", "zero3")
"""Each shares out one piece more."""


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to turn on, on top of those before it."""

    title: Text
    changes: dict[str, str | int | bool]
    """Fields of the request."""
    peak_bytes: int
    saved_bytes: int
    """Against the step before."""
    time_factor: float | None
    """Of an update, against the step before, by the roofline; None: the card's rate is unknown."""
    fits: bool


def remedies(request: MemoryRequest, card: CardState, factor: float = 1.0) -> Iterator[Remedy]:
    """Yield what to turn on, least loss of speed first, each on top of the last, until the run fits.

    What saves nothing is left out; what comes after the first fit is not shown. ``factor``: what a trace or a measurement
    found the tensors to be, of what the arithmetic says.
    """
    row = row_of(card.name)
    now = request
    peak = scaled_peak(now, factor)
    for title, change in levers(card, factor):
        changed = change(now)
        if changed is None:
            continue
        after = scaled_peak(changed, factor)
        if after > (1 - WORTH) * peak:
            continue
        yield Remedy(
            title=title(changed), changes=_changes(now, changed), peak_bytes=after, saved_bytes=peak - after,
            time_factor=_time_factor(now, changed, row), fits=after <= card.free_bytes,
        )  # fmt: skip
        now, peak = changed, after
        if after <= card.free_bytes:
            return


def _changes(before: MemoryRequest, after: MemoryRequest) -> dict[str, str | int | bool]:
    names = [name for name in MemoryRequest.__struct_fields__ if name != "config"]
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}


def _time_factor(before: MemoryRequest, after: MemoryRequest, row: dict[str, Any] | None) -> float | None:
    """An update's time, since accumulation makes one of several micro-batches."""
    times = [step_time(one, row) if row else None for one in (before, after)]
    apart = [(one.offload, one.cards, one.sharding) for one in (before, after)]
    if times[0] is None or times[1] is None or apart[0] != apart[1]:
        return None  # what goes over PCIe and between cards is not in the roofline
    return times[1].seconds / times[0].seconds


Lever = tuple[Callable[[MemoryRequest], Text], Callable[[MemoryRequest], MemoryRequest | None]]


def levers(card: CardState, factor: float = 1.0) -> tuple[Lever, ...]:
    """Return what can be turned on, in the order of least loss of speed."""
    capability = parse_capability(card.compute_capability)

    def largest(request: MemoryRequest) -> int:
        return largest_batch(
            request, card.free_bytes, lambda batch: scaled_peak(replace(request, batch_size=batch), factor)
        )

    def half(request: MemoryRequest) -> MemoryRequest | None:
        if request.device == "cpu":
            return (
                replace(request, precision="bf16") if request.precision == "fp32" and card.has_bf16 else None
            )
        if request.precision != "fp32" or capability is None or capability < (7, 0):
            return None
        return replace(request, precision="bf16" if capability >= (8, 0) else "fp16")

    def sdpa(request: MemoryRequest) -> MemoryRequest | None:
        shape = shape_of(request.config, request.task, request.num_labels)
        return replace(request, attention="sdpa") if request.attention == "eager" and shape.has_sdpa else None

    def split(request: MemoryRequest) -> MemoryRequest | None:
        if request.batch_size <= 8:
            return None
        return with_micro_batch(request, max(8, largest(request)))

    def checkpointing(request: MemoryRequest) -> MemoryRequest | None:
        shape = shape_of(request.config, request.task, request.num_labels)
        if request.gradient_checkpointing or not shape.has_checkpointing:
            return None
        return replace(request, gradient_checkpointing=True)

    def eight_bit(request: MemoryRequest) -> MemoryRequest | None:
        if request.device == "cpu" or not request.optimizer.startswith("adamw"):
            return None
        return replace(request, optimizer="adamw-8bit")

    def smallest(request: MemoryRequest) -> MemoryRequest | None:
        if request.batch_size == 1:
            return None
        return with_micro_batch(request, max(1, largest(request)))

    def lora(request: MemoryRequest) -> MemoryRequest | None:
        return replace(request, lora_rank=LORA_RANK) if not request.lora_rank else None

    def frozen_low(request: MemoryRequest) -> MemoryRequest | None:
        if (
            not request.lora_rank
            or request.precision == "bf16-pure"
            or capability is None
            or capability < (8, 0)
        ):
            return None
        return replace(request, precision="bf16-pure")

    def offload(request: MemoryRequest) -> MemoryRequest | None:
        return replace(request, offload=True) if not request.offload and request.device == "cuda" else None

    def sharded(stage: str) -> Callable[[MemoryRequest], MemoryRequest | None]:
        def shard(request: MemoryRequest) -> MemoryRequest | None:
            later = SHARDINGS.index(stage) > SHARDINGS.index(request.sharding)
            return replace(request, sharding=stage) if request.cards > 1 and later else None

        return shard

    def accumulated(request: MemoryRequest) -> Text:
        return t("micro-batches of {micro}, accumulated {times} {times:time|times}: the same update", micro=request.batch_size, times=request.accumulation)  # fmt: skip

    return (
        (lambda _: t("fused AdamW in place of foreach: no copy of all weights"),
         lambda one: replace(one, optimizer="adamw") if one.optimizer == "adamw-foreach" else None),
        (lambda _: t("SDPA in place of eager attention: no matrix of length x length is kept"), sdpa),
        (lambda one: t("{precision} autocast: half of the activations, and faster on tensor cores", precision=one.precision), half),
        (lambda _: t("ZeRO-1: each card keeps a share of the optimizer's states; as much is sent as before"), sharded("zero1")),
        (lambda _: t("ZeRO-2 (FSDP's SHARD_GRAD_OP): gradients are shared out too"), sharded("zero2")),
        (accumulated, split),
        (lambda _: t("gradient checkpointing: one more forward pass in each backward"), checkpointing),
        (lambda _: t("8-bit AdamW (bitsandbytes): the moments in a byte each; the numbers change slightly"), eight_bit),
        (lambda _: t("ZeRO-3 (FSDP's FULL_SHARD): weights are shared out too, and gathered layer by layer: half as much again is sent"), sharded("zero3")),
        (accumulated, smallest),
        (lambda one: t("LoRA of rank {rank}: only adapters are trained, which is another training", rank=one.lora_rank), lora),
        (lambda _: t("the frozen weights in bf16 too: nothing updates them"), frozen_low),
        (accumulated, smallest),
        (lambda _: t("optimizer states in the host's memory (ZeRO-Offload): an update waits for PCIe"), offload),
    )  # fmt: skip
