"""Will a run fit: the prediction held against a card's free memory, the largest micro-batch, and what to turn on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from doctor.card_choice import CardRow, largest_batch, replace, with_micro_batch
from doctor.model import Gpu
from doctor.roofline import step_time
from doctor.tables.gpus import row_of
from runner.choices import parse_capability
from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.model_shapes import shape_of
from runner.text import Text, t

WORTH = 0.01
"""What saves less of the peak is not worth a line."""
LORA_RANK = 8
"""peft's default."""


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


class CardState(msgspec.Struct, frozen=True, kw_only=True):
    """A card as it is now."""

    name: str
    total_bytes: int
    free_bytes: int
    """What others leave: ``nvidia-smi --query-gpu=memory.free``."""
    compute_capability: str = ""


class MemoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``doctor plan``."""

    model: str
    config_source: str
    request: MemoryRequest
    estimate: MemoryEstimate
    """Exact where it was traced, else the arithmetic."""
    arithmetic: MemoryEstimate | None = None
    """Beside an exact one; None: the architecture is not known to the arithmetic."""
    card: CardState | None = None
    """None: no card here."""
    fits: bool | None = None
    """With the expected peak, in what is free now; None: no card."""
    surely: bool | None = None
    """The whole range lies on the same side."""
    largest_batch: int | None = None
    remedies: tuple[Remedy, ...] = ()
    cards: tuple[CardRow, ...] = ()
    samples: int = 0
    """An epoch's, for ``cards``."""
    notes: tuple[Text, ...] = ()


def card_state(gpu: Gpu) -> CardState | None:
    """Return a card of the facts as this module wants it; None: its memory could not be read."""
    if gpu.memory_total_bytes is None or (gpu.memory_free_bytes is None and gpu.memory_used_bytes is None):
        return None
    free = gpu.memory_free_bytes
    if free is None:
        free = gpu.memory_total_bytes - (gpu.memory_used_bytes or 0)
    return CardState(
        name=gpu.name,
        total_bytes=gpu.memory_total_bytes,
        free_bytes=free,
        compute_capability=gpu.compute_capability,
    )


def plan_for(
    model: str, source: str, request: MemoryRequest, found: MemoryEstimate, card: CardState | None,
    peak: Callable[[int], int] | None = None,
) -> MemoryPlan:  # fmt: skip
    """Hold a prediction against a card. ``peak`` gives the peak of another batch where it was traced."""
    plan = MemoryPlan(model=model, config_source=source, request=request, estimate=found, card=card)
    if card is None:
        return plan
    fits = found.peak_bytes <= card.free_bytes
    known = knows(request)
    return msgspec.structs.replace(
        plan,
        fits=fits,
        surely=found.high_bytes <= card.free_bytes if fits else found.low_bytes > card.free_bytes,
        largest_batch=largest_batch(request, card.free_bytes, peak) if known or peak else None,
        remedies=() if fits or not known else tuple(remedies(request, card)),
    )


def knows(request: MemoryRequest) -> bool:
    from runner.model_shapes import UnknownArchitecture

    try:
        shape_of(request.config, request.task, request.num_labels)
    except UnknownArchitecture:
        return False
    return True


def remedies(request: MemoryRequest, card: CardState) -> Iterator[Remedy]:
    """Yield what to turn on, least loss of speed first, each on top of the last, until the run fits.

    What saves nothing is left out; what comes after the first fit is not shown.
    """
    row = row_of(card.name)
    now = request
    peak = estimate(now).peak_bytes
    for title, change in levers(card):
        changed = change(now)
        if changed is None:
            continue
        after = estimate(changed).peak_bytes
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
    if times[0] is None or times[1] is None or before.offload != after.offload or before.cards != after.cards:
        return None
    return times[1].seconds / times[0].seconds


Lever = tuple[Callable[[MemoryRequest], Text], Callable[[MemoryRequest], MemoryRequest | None]]


def levers(card: CardState) -> tuple[Lever, ...]:
    """Return what can be turned on, in the order of least loss of speed."""
    capability = parse_capability(card.compute_capability)

    def half(request: MemoryRequest) -> MemoryRequest | None:
        if request.precision != "fp32" or capability is None or capability < (7, 0):
            return None
        return replace(request, precision="bf16" if capability >= (8, 0) else "fp16")

    def sdpa(request: MemoryRequest) -> MemoryRequest | None:
        shape = shape_of(request.config, request.task, request.num_labels)
        return replace(request, attention="sdpa") if request.attention == "eager" and shape.has_sdpa else None

    def split(request: MemoryRequest) -> MemoryRequest | None:
        if request.batch_size <= 8:
            return None
        return with_micro_batch(request, max(8, largest_batch(request, card.free_bytes)))

    def checkpointing(request: MemoryRequest) -> MemoryRequest | None:
        shape = shape_of(request.config, request.task, request.num_labels)
        if request.gradient_checkpointing or not shape.has_checkpointing:
            return None
        return replace(request, gradient_checkpointing=True)

    def eight_bit(request: MemoryRequest) -> MemoryRequest | None:
        return replace(request, optimizer="adamw-8bit") if request.optimizer.startswith("adamw") else None

    def smallest(request: MemoryRequest) -> MemoryRequest | None:
        if request.batch_size == 1:
            return None
        return with_micro_batch(request, max(1, largest_batch(request, card.free_bytes)))

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
        return replace(request, offload=True) if not request.offload else None

    def accumulated(request: MemoryRequest) -> Text:
        return t("micro-batches of {micro}, accumulated {times} {times:time|times}: the same update", micro=request.batch_size, times=request.accumulation)  # fmt: skip

    return (
        (lambda _: t("fused AdamW in place of foreach: no copy of all weights"),
         lambda one: replace(one, optimizer="adamw") if one.optimizer == "adamw-foreach" else None),
        (lambda _: t("SDPA in place of eager attention: no matrix of length x length is kept"), sdpa),
        (lambda one: t("{precision} autocast: half of the activations, and faster on tensor cores", precision=one.precision), half),
        (accumulated, split),
        (lambda _: t("gradient checkpointing: one more forward pass in each backward"), checkpointing),
        (lambda _: t("8-bit AdamW (bitsandbytes): the moments in a byte each; the numbers change slightly"), eight_bit),
        (accumulated, smallest),
        (lambda one: t("LoRA of rank {rank}: only adapters are trained, which is another training", rank=one.lora_rank), lora),
        (lambda _: t("the frozen weights in bf16 too: nothing updates them"), frozen_low),
        (accumulated, smallest),
        (lambda _: t("optimizer states in the host's memory (ZeRO-Offload): an update waits for PCIe"), offload),
    )  # fmt: skip
