"""Which card for this run: every card of the table with what fits on it, how fast, and what an epoch costs. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from doctor.roofline import NOMINAL_SHARE, step_time
from doctor.tables import load
from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.text import Text, t

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
        price_per_hour=price, confidence=card["confidence"],
        epoch_cost=epoch / 3600 * price * request.cards if epoch is not None and price is not None else None,
    )  # fmt: skip


class BadPrice(ValueError):  # noqa: N818 - it is what it says
    """A price list that cannot be read. ``text`` says which entry, and how one looks."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def parse_prices(text: str) -> dict[str, float]:
    """Return card -> price an hour from ``RTX 4090=2.1,A100 80GB=7.5``: every card of the table that a name means.

    Raises:
        BadPrice: an entry is not NAME=NUMBER, or names no card of the table.
    """
    prices: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = entry.rpartition("=")
        try:
            price = float(number)
        except ValueError:
            price = -1.0
        if not name or not math.isfinite(price) or price < 0:
            raise BadPrice(t("{entry} is not a price: write NAME=PRICE, as in RTX 4090=2.1", entry=entry))
        cards = cards_called(name)
        if not cards:
            raise BadPrice(
                t("{name} is not in the table of cards: write it as nvidia-smi -L does", name=name)
            )
        prices |= dict.fromkeys(cards, price)
    return prices


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9.]+", name.lower())) - {"nvidia", "geforce", "tesla"}


def cards_called(name: str) -> list[str]:
    """Return the cards of the table that a short name means: ``A100 80GB`` is both forms, ``RTX 4090`` not the D."""
    wanted = _words(name)
    rows: Sequence[dict[str, Any]] = load("gpus")["gpu"]
    exact = [
        row["name"] for row in rows if any(_words(one) == wanted for one in (row["name"], *row["aliases"]))
    ]
    return exact or [row["name"] for row in rows if wanted and wanted <= _words(row["name"])]
