"""Which card for this run: every card of the table with what fits on it, how fast, and what an epoch costs. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from doctor.roofline import NOMINAL_SHARE, step_time
from doctor.tables import load
from runner.estimate import MemoryEstimate, MemoryRequest, estimate

GIB = 1 << 30
LARGEST_BATCH = 4096
"""Looked for no further: such a batch is no memory question any more."""


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One card, for one run."""

    name: str
    memory_bytes: int
    """What of the nominal memory a process can have."""
    fits: bool
    """By the expected peak."""
    surely: bool
    """The high end of the range fits too."""
    as_fp16: bool = False
    """bf16 was asked for and the card has none in hardware: fp16 in its place, which takes as much."""
    needed_bytes: int
    largest_batch: int
    """Micro-batch; 0: not even one sample."""
    samples_per_s: float | None = None
    """None: the card's 16-bit rate is unknown, or the run is in fp32."""
    epoch_s: float | None = None
    price_per_hour: float | None = None
    epoch_cost: float | None = None
    confidence: str = ""
    rented: bool = False
    """Listed day by day where cards are rented."""


def replace(request: MemoryRequest, **changes: Any) -> MemoryRequest:
    return msgspec.structs.replace(request, **changes)


def largest_batch(request: MemoryRequest, budget_bytes: int, peak: Callable[[int], int] | None = None) -> int:
    """Return the largest micro-batch whose expected peak stays within ``budget_bytes``; 0: none does.

    The peak grows with the batch, so bisection finds it; ``peak`` gives it for a batch (default: the arithmetic).
    """

    def arithmetic(batch: int) -> int:
        return estimate(replace(request, batch_size=batch)).peak_bytes

    peak = peak or arithmetic
    low, high = 0, LARGEST_BATCH + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if peak(middle) <= budget_bytes else (low, middle)
    return low


def with_micro_batch(request: MemoryRequest, largest: int) -> MemoryRequest:
    """Return the same update in parts that fit: halved until no larger than ``largest``."""
    micro, parts = request.batch_size, request.accumulation
    while micro > max(1, largest) and micro > 1:
        micro, parts = math.ceil(micro / 2), parts * 2
    return replace(request, batch_size=micro, accumulation=parts)


def card_rows(request: MemoryRequest, samples: int, prices: Mapping[str, float]) -> list[CardRow]:
    """Return a row for each card of the table, cheapest epoch first, else fastest; those that it does not fit last."""
    needed = estimate(request)
    rows = [_row(request, card, needed, samples, prices.get(card["name"])) for card in load("gpus")["gpu"]]

    def order(row: CardRow) -> tuple[bool, float, float, int]:
        return (
            row.largest_batch == 0,
            math.inf if row.epoch_cost is None else row.epoch_cost,
            math.inf if row.epoch_s is None else row.epoch_s,
            row.memory_bytes,
        )

    return sorted(rows, key=order)


def _row(
    request: MemoryRequest, card: dict[str, Any], needed: MemoryEstimate, samples: int, price: float | None
) -> CardRow:
    budget = int(card["memory_gb"] * GIB * NOMINAL_SHARE)
    largest = largest_batch(request, budget)
    time = step_time(with_micro_batch(request, largest), card) if largest else None
    update = request.batch_size * request.accumulation
    epoch = samples / (update * request.cards) * time.seconds if time else None
    return CardRow(
        name=card["name"], memory_bytes=budget, fits=needed.peak_bytes <= budget,
        surely=needed.high_bytes <= budget, needed_bytes=needed.peak_bytes, largest_batch=largest,
        as_fp16=request.precision.startswith("bf16") and not card["bf16"],
        samples_per_s=update * request.cards / time.seconds if time else None, epoch_s=epoch,
        price_per_hour=price, confidence=card["confidence"], rented=card.get("rented", False),
        epoch_cost=epoch / 3600 * price * request.cards if epoch is not None and price is not None else None,
    )  # fmt: skip


class Choice(NamedTuple):
    """What to rent: of the cards with a price the cheapest and the fastest epoch; without prices the smallest and the fastest."""

    best: CardRow
    fastest: CardRow
    priced: int
    """Cards with a price; 0: nobody named any."""


def choice_of(rows: Sequence[CardRow], needs_bf16: bool = False) -> Choice | None:
    """Return what to rent; ``needs_bf16``: weights in 16 bits, for which fp16 is no substitute. None: the run is too large for every card, or for every one with a price, or no time is known."""
    priced = [row for row in rows if row.price_per_hour is not None]
    timed = [
        row
        for row in (priced or rows)
        if row.largest_batch and row.epoch_s is not None and not (needs_bf16 and row.as_fp16)
    ]
    if not timed:
        return None
    fastest = min(timed, key=lambda row: row.epoch_s or math.inf)
    if priced:
        return Choice(min(timed, key=lambda row: row.epoch_cost or 0.0), fastest, len(priced))
    whole = [row for row in timed if row.surely] or [row for row in timed if row.fits] or timed
    return Choice(
        min(whole, key=lambda row: (row.memory_bytes, not row.rented, row.epoch_s or math.inf)), fastest, 0
    )
