"""How several processes share one training, as a choice: the simplest way that fits, with its reason. Pure."""

from __future__ import annotations

from runner.text import Text, t

USABLE = 0.92
"""Of a device's memory: the rest is the context's, the allocator's and the exchange's buckets."""
IN_PARTS = ("fsdp", "deepspeed")
"""Strategies whose ranks hold a part each: all of them take part in what is saved and loaded, and meet in the forward pass."""


def choose_strategy(
    asked: str, needed_bytes: int | None, available_bytes: int | None, processes: int
) -> tuple[str, Text]:
    """Return ``ddp`` or ``fsdp`` and why; what the profile names is taken as it is. Pure."""
    if asked != "auto":
        return asked, t("asked for in the profile")
    if available_bytes is None:
        return "ddp", t(
            "a copy of the model in each process, the simplest: they share one machine's memory either way"
        )
    if needed_bytes is None:
        return "ddp", t(
            "a copy of the model in each process, the simplest; whether it fits is not known for this architecture"
        )
    amounts = {"needed": needed_bytes >> 20, "available": available_bytes >> 20}
    if needed_bytes <= available_bytes * USABLE:
        return "ddp", t(
            "a copy of the model in each process, the simplest, fits: {needed} of {available} MB", **amounts
        )
    return "fsdp", t("a copy of the model in each process would not fit ({needed} of {available} MB): weights, gradients and "
                     "moments are cut into {count} parts", **amounts, count=processes)  # fmt: skip
