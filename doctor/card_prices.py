"""What cards cost an hour, as people write it: ``RTX 4090=2.1,A100 80GB=¥7.5``. Pure."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from doctor.card_names import cards_called
from doctor.named_card import not_in_table
from runner.text import Text, t

CURRENCIES = {
    "¥": "¥", "￥": "¥", "元": "¥", "块": "¥", "rmb": "¥", "cny": "¥", "$": "$", "usd": "$", "€": "€", "eur": "€",
}  # fmt: skip
# ¥2.1  2.1元  2.1元/时  $0.44/h  2.1 CNY/hour
_PRICE = re.compile(
    r"([^\d\s.+-]*)\s*(\d+(?:\.\d*)?|\.\d+)\s*([^\d\s/]*)\s*(?:/\s*(?:h|hr|hour|时|小时))?", re.IGNORECASE
)


class BadPrice(ValueError):  # noqa: N818 - it is what it says
    """A price list that cannot be read. ``text`` says which entry, and how one looks."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class Prices(NamedTuple):
    by_card: dict[str, float]
    """An hour, by the table's name."""
    currency: str = ""
    """Its sign; empty: nobody said."""


def parse_prices(text: str) -> Prices:
    """Return what each card costs: every card of the table that a name means.

    Raises:
        BadPrice: an entry is not NAME=NUMBER, names no card of the table, or is in another currency than the rest.
    """
    by_card: dict[str, float] = {}
    currencies: set[str] = set()
    for entry in filter(None, (part.strip() for part in re.split("[,，;；]", text))):
        name, price, currency = _entry(entry)
        cards = cards_called(name)
        if not cards:
            raise BadPrice(not_in_table(name))
        by_card |= dict.fromkeys(cards, price)
        currencies |= {currency} - {""}
    if len(currencies) > 1:
        raise BadPrice(t("prices in {count} currencies cannot be compared ({signs}): write them in one",
                         count=len(currencies), signs=" ".join(sorted(currencies))))  # fmt: skip
    return Prices(by_card, next(iter(currencies), ""))


def _entry(entry: str) -> tuple[str, float, str]:
    name, _, number = entry.replace("＝", "=").rpartition("=")
    found = _PRICE.fullmatch(number.strip())
    signs = [part.lower() for part in (found[1], found[3]) if part] if found else []
    if not name.strip() or found is None or any(sign not in CURRENCIES for sign in signs) or not math.isfinite(float(found[2])):  # fmt: skip
        raise BadPrice(t("{entry} is not a price: write NAME=PRICE, as in RTX 4090=2.1", entry=entry))
    return name.strip(), float(found[2]), CURRENCIES[signs[0]] if signs else ""
