"""What ``doctor plan`` is asked to hold a run against: cards by number or name, prices, and what to read of the machine for it."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.commands.planned_step import DEVICE_SECTIONS, SECTIONS
from doctor.language import say

if TYPE_CHECKING:
    from doctor.card_prices import Prices
    from doctor.named_card import NamedCard
    from doctor.plan_options import PlanOptions


def options_of(namespace: argparse.Namespace, card_name: str) -> PlanOptions:
    from doctor.plan_options import DEFAULT_SAMPLES, PlanOptions

    prices = _prices(namespace.price)
    named = _named(card_name)
    return PlanOptions(
        exact=namespace.exact,
        card=named.state if named else None,
        all_cards=namespace.gpus == "all" or prices is not None,
        priced_only=prices is not None and namespace.gpus != "all",
        samples=namespace.samples or DEFAULT_SAMPLES,
        prices=prices.by_card if prices else {},
        currency=prices.currency if prices else "",
        on_cpu=namespace.cpu,
        memory_limit_bytes=namespace.memory_limit,
        recorded=namespace.facts is not None,
        notes=named.notes if named else (),
    )


def sections_for(namespace: argparse.Namespace, card_name: str) -> tuple[str, ...]:
    """Return what of this machine the answer rests on: of a named card and a model's arithmetic nothing does."""
    from doctor import service

    if namespace.profile or namespace.exact or namespace.measure:
        return SECTIONS
    if card_name:
        return ()
    return SECTIONS if service.has_measurements() else DEVICE_SECTIONS


def _prices(text: str) -> Prices | None:
    if not text.strip():
        return None
    from doctor.card_prices import BadPrice, parse_prices

    try:
        found = parse_prices(text)
    except BadPrice as error:
        raise CommandError(error.text, Exit.USAGE) from None
    return found if found.by_card else None


def _named(card_name: str) -> NamedCard | None:
    if not card_name:
        return None
    from doctor.named_card import UnknownCard, named_card

    try:
        return named_card(card_name)
    except UnknownCard as error:
        raise CommandError(error.text, Exit.USAGE) from None


def asked_cards(namespace: argparse.Namespace) -> tuple[str, str]:
    """Return how many cards are asked for (a number, ``gpu`` or ``all``), and the name of the card; empty: the one here.

    ``--gpus "RTX 4090"`` and ``--gpus 8xH100`` name a card too.
    """
    cards, name = namespace.gpus.strip(), (namespace.gpu or "").strip()
    if not (cards in ("all", "gpu") or cards.isdecimal()):
        several = re.fullmatch(r"(\d{1,3}) ?[x*×] ?(.+)", cards, re.IGNORECASE)  # 8xH100
        cards, given = (several[1], several[2]) if several else ("1", cards)
        if name:
            raise CommandError(say("--gpus names a card and --gpu another: name it once"), Exit.USAGE)
        name = given
    if not name and namespace.gpu is not None:
        raise CommandError(say("--gpu names no card"), Exit.USAGE)
    if name and (namespace.cpu or namespace.measure):
        raise CommandError(say("--cpu and --measure are about this machine, --gpu is about a card by its name: one of them"), Exit.USAGE)  # fmt: skip
    return cards, name


def card_count(cards: str, here: int) -> int:
    """Return how many cards train together; ``gpu``: every one of the ``here``."""
    if cards == "all":
        return 1
    if cards == "gpu":
        return max(1, here)
    if int(cards) < 1:
        raise CommandError(
            say("--gpus takes a number of cards, gpu (all that are here), or all (the table of every card)"),
            Exit.USAGE,
        )
    return int(cards)
