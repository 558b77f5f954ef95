"""How much of its cards' rate a run gets: its tokens of all processes against the cards that these processes train on. Pure."""

from __future__ import annotations

from typing import Any

from doctor.expectations import Expected, mfu
from runner.events import number, whole
from runner.state import RunState
from runner.text import Text, t

RATE_POINTS = 20
"""Newest points that a rate is the mean of: one step is noise."""


def mfu_of(state: RunState, expected: Expected | None) -> float | Text:
    """Return the model FLOPs utilisation of the newest steps, or why it cannot be told."""
    if expected is None:
        return t("the run's plan was not read")
    cards = _cards_used(state, [card for card in state.gpus.get("gpus") or () if isinstance(card, dict)])
    if isinstance(cards, Text):
        return cards
    return mfu(expected, _tokens_per_s(state), cards, str(state.started.get("precision") or ""))


def _tokens_per_s(state: RunState) -> float | None:
    """Return the rate of all processes together; None where one of them does not tell it."""
    if together := state.ranks.as_dict(state.started):
        return number(together["tokens_per_s"])
    rates = state.tokens_per_s.values[-RATE_POINTS:]
    return sum(rates) / len(rates) if rates else None


def _cards_used(state: RunState, cards: list[dict[str, Any]]) -> list[dict[str, Any]] | Text:
    """Return a card for each process, which the sampler of one machine sees a part of; or why that cannot be told."""
    world = whole(state.started.get("world_size"), None) or 1
    if len(cards) < 2 and world == 1:
        return cards
    if len({str(card.get("name")) for card in cards}) > 1:
        return t("the cards are of different kinds, and which of them it trains on was not told")
    if world == 1 and state.supervised:
        return t("which of the cards it trains on was not told")
    return cards[:1] * world
