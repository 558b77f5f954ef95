"""What is asked of a memory plan beside the run itself. Pure."""

from __future__ import annotations

import msgspec

from doctor.card_state import CardState
from runner.text import Text

DEFAULT_SAMPLES = 25_000
"""An epoch for the table of cards where nobody says: IMDb's training reviews."""


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    exact: bool = False
    card: CardState | None = None
    """Asked about in place of this machine's: one by its name, or by its memory."""
    all_cards: bool = False
    priced_only: bool = False
    """Of the table those cards alone that have a price."""
    samples: int = DEFAULT_SAMPLES
    prices: dict[str, float] = {}
    currency: str = ""
    """The prices' sign; empty: nobody said."""
    on_cpu: bool = False
    """Train on the CPU, in the machine's memory."""
    memory_limit_bytes: int | None = None
    """As if the device had no more."""
    recorded: bool = False
    """The machine is a file: what was measured here is not about it."""
    by_profile: bool = False
    """The step is a profile's: what to turn on is what a profile can say."""
    notes: tuple[Text, ...] = ()
    """What is to be said of the step beside the figures."""

    @property
    def of_another(self) -> bool:
        """Is this about another device than the one here? What was measured here says nothing of it then."""
        return self.recorded or self.card is not None
