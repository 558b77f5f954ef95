"""The device that a run is held against: a card as it is now, or the machine's own memory where it trains on the CPU. Pure."""

from __future__ import annotations

import msgspec

from doctor.model import Facts, Gpu

CPU = "CPU"


class CardState(msgspec.Struct, frozen=True, kw_only=True):
    """A card as it is now."""

    name: str
    total_bytes: int
    free_bytes: int
    """What others leave: ``nvidia-smi --query-gpu=memory.free``."""
    compute_capability: str = ""
    """Empty: unknown, or a CPU."""
    has_bf16: bool = False
    """A CPU that multiplies bf16 in hardware."""


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


def cpu_state(facts: Facts) -> CardState | None:
    """Return the memory that a process here can have: the machine's, or less where the container has a limit; None: unread."""
    host, container = facts.host.value, facts.container.value
    total = host.memory_total_bytes if host else None
    limit = container.memory_limit_bytes if container else None
    sizes = [size for size in (total, limit) if size]
    available = [size for size in (host.memory_available_bytes if host else None, limit) if size]
    if not sizes or not available:
        return None
    units = {"avx512_bf16", "amx_bf16"} & set((host.cpu_flags or ()) if host else ())
    return CardState(name=CPU, total_bytes=min(sizes), free_bytes=min(available), has_bf16=bool(units))


def limited(card: CardState, limit_bytes: int | None) -> CardState:
    """Return the device as if it had no more than ``limit_bytes``."""
    if limit_bytes is None:
        return card
    total, free = min(card.total_bytes, limit_bytes), min(card.free_bytes, limit_bytes)
    return msgspec.structs.replace(card, total_bytes=total, free_bytes=free)
