"""Will a run fit: the prediction held against a card's free memory, the largest micro-batch, and what to turn on. Pure."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from doctor.card_choice import CardRow, largest_batch
from doctor.card_sizes import CardSizes
from doctor.card_state import CardState
from doctor.corrections import Measurement, Tuned
from runner.estimate import MemoryEstimate, MemoryRequest, estimate
from runner.model_shapes import UnknownArchitecture, shape_of
from runner.text import Text


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to turn on, on top of those before it."""

    title: Text
    changes: dict[str, str | int | bool]
    """Fields of the request."""
    peak_bytes: int
    saved_bytes: int
    """Against the step before."""
    time_factor: float | None
    """Of an update, against the step before, by the roofline; None: the card's rate is unknown."""
    fits: bool
    setting: str = ""
    """What a profile says for it (after ``--set``); empty: the step is no profile's."""


class MemoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``doctor plan``."""

    model: str
    config_source: str
    request: MemoryRequest
    estimate: MemoryEstimate
    """Exact where it was traced, else the arithmetic."""
    arithmetic: MemoryEstimate | None = None
    """Beside an exact one; None: the architecture is not known to the arithmetic."""
    card: CardState | None = None
    """None: no card here."""
    card_is_named: bool = False
    """It was asked about by its name, and is not this machine's."""
    card_sizes: CardSizes | None = None
    """Which size of card it takes, where there is none to hold it against."""
    obstacle: Text | None = None
    """Why the step cannot be taken, however much memory there is."""
    on_cpu_here: MemoryPlan | None = None
    """The same on this machine's CPU, where it has no card and none was asked about."""
    fits: bool | None = None
    """With the expected peak, in what is free now; None: no card."""
    surely: bool | None = None
    """The whole range lies on the same side."""
    largest_batch: int | None = None
    sure_batch: int | None = None
    """The largest micro-batch whose whole range fits, where the expected peak fits and its high end does not; 0: none does."""
    host_free_bytes: int | None = None
    """Of the host's memory, for what is offloaded to it; None: not read."""
    correction: Measurement | None = None
    """What was measured here and is in ``estimate``; None: nothing was, for such a run."""
    tuned: Tuned | None = None
    """The largest micro-batch that ``doctor tune`` found here."""
    remedies: tuple[Remedy, ...] = ()
    cards: tuple[CardRow, ...] = ()
    cards_left_out: int = 0
    """Without a price, where only those with one were asked for, that it would fit all the same."""
    samples: int = 0
    """An epoch's, for ``cards``."""
    currency: str = ""
    """Of what an epoch costs."""
    notes: tuple[Text, ...] = ()

    @property
    def host_is_short(self) -> bool:
        """Does more have to lie in the host's memory than it has?"""
        return self.host_free_bytes is not None and self.estimate.host_bytes > self.host_free_bytes


def plan_for(
    model: str, source: str, request: MemoryRequest, found: MemoryEstimate, card: CardState | None,
    at: Callable[[int], MemoryEstimate] | None = None, host_free_bytes: int | None = None, by_profile: bool = False,
) -> MemoryPlan:  # fmt: skip
    """Hold a prediction against a card and the host's memory. ``at`` foretells another batch; None: it was neither traced nor measured.

    ``by_profile``: the step is a profile's, and what to turn on is what a profile can say.
    """
    plan = MemoryPlan(
        model=model, config_source=source, request=request, estimate=found, card=card, host_free_bytes=host_free_bytes
    )  # fmt: skip
    if card is None:
        return plan
    fits = found.peak_bytes <= card.free_bytes and not plan.host_is_short
    known = knows(request)
    if at is None and known:
        at = _by_arithmetic(request)
    factor = found.allocated_bytes / estimate(request).allocated_bytes if known else 1.0
    surely = found.high_bytes <= card.free_bytes if fits else plan.host_is_short or found.low_bytes > card.free_bytes  # fmt: skip
    return msgspec.structs.replace(
        plan,
        fits=fits,
        surely=surely,
        largest_batch=largest_batch(request, card.free_bytes, lambda batch: at(batch).peak_bytes)
        if at
        else None,
        sure_batch=largest_batch(request, card.free_bytes, lambda batch: at(batch).high_bytes)
        if at and fits and not surely
        else None,
        remedies=() if fits or not known else _to_make_it_fit(plan, factor, by_profile),
    )


def _to_make_it_fit(plan: MemoryPlan, factor: float, by_profile: bool) -> tuple[Remedy, ...]:
    from doctor.remedies import remedies

    assert plan.card is not None
    return tuple(remedies(plan.request, plan.card, factor, plan.host_free_bytes, by_profile))


def _by_arithmetic(request: MemoryRequest) -> Callable[[int], MemoryEstimate]:
    return lambda batch: estimate(msgspec.structs.replace(request, batch_size=batch))


def knows(request: MemoryRequest) -> bool:
    try:
        shape_of(request.config, request.task, request.num_labels)
    except UnknownArchitecture:
        return False
    return True
