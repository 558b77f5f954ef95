"""One training step as a record: everything that decides how much memory it takes. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runner.sections import FreezeRule

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
    lora_targets: tuple[str, ...] = ()
    """Names of the layers with adapters; empty: peft's default, queries and values."""
    lora_dropout: float = 0.0
    freeze: tuple[FreezeRule, ...] = ()
    """Parameters that stand still, as a profile's ``train.freeze`` says it."""
    device: Literal["cuda", "cpu"] = "cuda"
    cards: int = 1
    sharding: Sharding = "ddp"
    """With several cards: ``zero3`` is FSDP's full sharding."""
    bucket_view: bool = False
    """Under DDP gradients lie in the buckets that are sent (``gradient_as_bucket_view``), as in ``doctor run``; torch's
    default keeps them twice."""
    spread: int = 1
    """One process whose layers lie on so many cards, one after another (accelerate's ``device_map``)."""
    offload: bool = False
    """Optimizer states (and the update) in the host's memory."""
    offload_parameters: bool = False
    """Parameters, gradients and states in the host's memory: a module's weights come to the card for its passes."""
