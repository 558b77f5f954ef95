"""A card that one does not have, by the name it is rented under: its table row, or its memory alone where the name says no more. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from doctor.card_names import nearest_cards, rows_called
from doctor.card_state import CardState
from doctor.roofline import NOMINAL_SHARE
from runner.text import Text, t

GIB = 1 << 30
LARGEST_GB = 1024
"""No card has more; a larger number is a typing error."""
# 24GB   vGPU-32GB   RTX 4090 48 G   80gib
_SIZE = re.compile(r"(?<![\d.])(\d{1,4}) ?(?:gib|gb|g)\b", re.IGNORECASE)


class UnknownCard(ValueError):  # noqa: N818 - it is what it says
    """A name that means no card. ``text`` says what was meant perhaps, and what to type instead."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class NamedCard(NamedTuple):
    """The card as it would be with nothing on it, and what a reader must know of how it was taken."""

    state: CardState
    notes: tuple[Text, ...] = ()


def named_card(name: str) -> NamedCard:
    """Return the card that ``name`` means: of several sizes of one card the smallest; ``24GB`` is any card with so much.

    Raises:
        UnknownCard: it is not in the table and tells no memory either.
    """
    rows, size = rows_called(name), size_in(name)
    if rows:
        smallest = min(rows, key=lambda row: float(row["memory_gb"]))
        return NamedCard(_state(smallest, rows), tuple(_of_several(name, smallest, rows)))
    if size is None:
        raise UnknownCard(not_in_table(name))
    made = rows_called(_SIZE.sub(" ", name))
    if made:
        why = t("{card} with {size} GB is not in the table: its speed is that of the one with {known} GB", card=made[0]["name"], size=size, known=made[0]["memory_gb"])  # fmt: skip
        return NamedCard(_state({**made[0], "memory_gb": size}, made), (why,))
    free = usable_bytes(size)
    why = t(
        "{name} tells a memory and no chip: whether it has bf16, and how fast it is, is not known", name=name
    )
    return NamedCard(CardState(name=name, total_bytes=free, free_bytes=free), (why,))


def usable_bytes(memory_gb: float) -> int:
    """Return what of a card's nominal memory a process can have: ECC and the driver keep a part."""
    return int(memory_gb * GIB * NOMINAL_SHARE)


def size_in(name: str) -> int | None:
    """Return the GB that a name tells; None: it tells none that a card could have."""
    found = _SIZE.findall(name)
    return int(found[-1]) if found and 0 < int(found[-1]) <= LARGEST_GB else None


def _state(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> CardState:
    free = usable_bytes(row["memory_gb"])
    capability = str(row["capability"]) if len({one["capability"] for one in rows}) == 1 else ""
    return CardState(name=row["name"], total_bytes=free, free_bytes=free, compute_capability=capability)


def _of_several(name: str, taken: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Sequence[Text]:
    sizes = sorted({row["memory_gb"] for row in rows})
    if len(sizes) == 1:
        return ()
    listed = ", ".join(f"{row['name']} ({row['memory_gb']} GB)" for row in rows)
    return (t("{name} is more than one card; planned for {taken}. There are: {cards}", name=name, taken=taken["name"], cards=listed),)  # fmt: skip


def not_in_table(name: str) -> Text:
    """Return the sentence for a name that no row has: what is near to it, or why there is none, and what to type."""
    size = size_in(name)
    if size is not None:
        return t("{name} is not in the table of cards, so how fast it is is not known. Whether it fits: --gpu {size}GB; what it costs: price the card that it is cut from, which nvidia-smi -L shows",
                 name=name, size=size)  # fmt: skip
    near = nearest_cards(name)
    if near:
        return t("{name} is not in the table of cards. Near to it: {near}. A memory does too: --gpu 24GB", name=name, near=", ".join(near))  # fmt: skip
    return t("{name} is not in the table of NVIDIA cards. Write it as nvidia-smi -L does, or its memory: --gpu 24GB", name=name)  # fmt: skip
