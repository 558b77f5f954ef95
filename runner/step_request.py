"""A plan's training step as a request for its memory: the one place that says what a profile's settings mean for it. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runner.choices import recomputes
from runner.memory_request import MemoryRequest, Optimizer, Precision, Sharding
from runner.order import PAD_TO
from runner.plan import Plan
from runner.strategy_choice import choose_strategy
from runner.text import Text

Device = Literal["cuda", "cpu"]


def step_request(
    plan: Plan,
    config: dict[str, Any],
    num_labels: int,
    samples: int,
    length: int,
    device: Device,
    precision: Precision,
    recomputes_activations: bool | None = None,
) -> MemoryRequest:
    """Return what a micro-batch of ``samples`` x ``length`` tokens asks for, of one process that trains alone.

    ``recomputes_activations``: instead of what the profile says.
    """
    profile, settings = plan.profile, plan.settings
    model, train, lora = profile.model, profile.train, profile.model.lora
    spread = plan.machine.gpu_count if model.device_map != "none" and device == "cuda" else 1
    return MemoryRequest(
        config=config, num_labels=num_labels, batch_size=samples, sequence_length=length, precision=precision, device=device,
        task="classification" if model.task == "token-classification" else model.task,
        optimizer=_optimizer(settings.fused, device), attention="eager" if model.attention == "eager" else "auto",
        gradient_checkpointing=recomputes(profile) if recomputes_activations is None else recomputes_activations,
        lora_rank=lora.rank if lora else 0, lora_targets=tuple(lora.targets) if lora else (),
        lora_dropout=lora.dropout if lora else 0.0, freeze=tuple(train.freeze),
        accumulation=max(1, -(-train.batch_size // samples)), spread=max(1, spread), bucket_view=True,
        offload=settings.offload == "optimizer", offload_parameters=settings.offload == "parameters",
    )  # fmt: skip


def _optimizer(fused: bool, device: Device) -> Optimizer:
    """Without the fused kernel torch takes the foreach form on CUDA and a loop on the CPU."""
    if fused:
        return "adamw"
    return "adamw-foreach" if device == "cuda" else "adamw-loop"


def worst_shape(plan: Plan, processes: int = 1, micro_batch: int | None = None) -> tuple[int, int]:
    """Return samples and tokens of the largest micro-batch that the data can bring. ``micro_batch``: instead of the plan's.

    A cut by tokens leaves few of the longest samples, or one more of somewhat shorter ones: whichever are more positions.
    """
    train = plan.profile.train
    samples = min(micro_batch or plan.settings.micro_batch_size, -(-train.batch_size // processes))
    length = train.max_length
    if not train.micro_batch_tokens:
        return samples, length
    few = max(1, min(samples, train.micro_batch_tokens // padded(length)))
    more = min(samples, few + 1)
    shorter = min(length, train.micro_batch_tokens // more // PAD_TO * PAD_TO)
    return (more, shorter) if more * shorter > few * length else (few, length)


def padded(length: int) -> int:
    return -(-length // PAD_TO) * PAD_TO


def shared(plan: Plan, alone: MemoryRequest, processes: int, strategy: str) -> MemoryRequest:
    """Return the request of one of several processes; ``alone`` has its samples already, without what they share."""
    if processes == 1:
        return alone
    each = -(-plan.profile.train.batch_size // processes)
    return msgspec.structs.replace(
        alone, cards=processes, sharding=_sharding(plan, strategy), spread=1,
        accumulation=max(1, -(-each // alone.batch_size)),
    )  # fmt: skip


def _sharding(plan: Plan, strategy: str) -> Sharding:
    """FSDP2 cuts what ZeRO stage 3 does; DeepSpeed's stage is 2 where the profile does not say."""
    if strategy == "deepspeed":
        stages: dict[int, Sharding] = {1: "zero1", 2: "zero2", 3: "zero3"}
        return stages[plan.profile.parallel.stage]
    return "zero3" if strategy == "fsdp" else "ddp"


def strategy_for(
    plan: Plan, needed_bytes: int | None, card_bytes: int | None, processes: int
) -> tuple[str, Text]:
    """Return how several processes would share the work, and why: as the trainer itself settles it."""
    return choose_strategy(plan.profile.parallel.strategy, needed_bytes, card_bytes, processes)
