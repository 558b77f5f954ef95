"""Which size of card a run needs: the answer where there is no card to hold it against. Pure."""

from __future__ import annotations

import msgspec

from doctor.named_card import usable_bytes
from doctor.tables import load
from runner.estimate import MemoryEstimate, MemoryRequest

NAMED = 3
"""Cards named for a size: what is rented most comes first, then what is fastest."""


class CardSize(msgspec.Struct, frozen=True, kw_only=True):
    memory_gb: int
    """Nominal, as cards are sold and rented."""
    names: tuple[str, ...]


class CardSizes(msgspec.Struct, frozen=True, kw_only=True):
    surely: CardSize | None
    """The smallest that the high end of the range fits; None: no card has as much."""
    expected: CardSize | None
    """The smallest that the expected peak fits."""
    largest_gb: int
    """Of the table."""


def sizes_for(found: MemoryEstimate, request: MemoryRequest) -> CardSizes:
    """Return the smallest sizes of card that a predicted run fits."""
    rows = [row for row in load("gpus")["gpu"] if row["bf16"] or request.precision != "bf16-pure"]
    sizes = sorted({int(row["memory_gb"]) for row in rows})

    def smallest(needed_bytes: int) -> CardSize | None:
        size = next((one for one in sizes if needed_bytes <= usable_bytes(one)), None)
        if size is None:
            return None
        able = [row for row in rows if row["memory_gb"] == size]
        able.sort(key=lambda row: (not row.get("rented", False), -row["tflops"]))
        return CardSize(memory_gb=size, names=tuple(str(row["name"]) for row in able[:NAMED]))

    return CardSizes(
        surely=smallest(found.high_bytes), expected=smallest(found.peak_bytes), largest_gb=sizes[-1]
    )
