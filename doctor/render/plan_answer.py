"""The answer of a memory plan in its first lines: does it fit, which card to rent, or which size of card it takes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from doctor.card_sizes import CardSize, CardSizes
from doctor.card_state import CPU
from doctor.language import say
from doctor.memory_plan import MemoryPlan
from doctor.render.cards_text import advice, short_name
from doctor.render.layout import human_bytes
from runner.text import Text, t


def answers(plan: MemoryPlan) -> Iterator[str]:
    """Yield the answer to what was asked first, then what is true of this machine beside it."""
    if plan.obstacle is not None:
        yield say(plan.obstacle)
    if plan.cards:
        yield say(advice(plan))
    if plan.card is not None or not plan.cards:
        yield headline(plan)
    if plan.on_cpu_here is not None:
        answer = headline(msgspec.structs.replace(plan.on_cpu_here, remedies=()))  # none of them is shown
        yield say(t("There is no NVIDIA card here; on this machine's CPU (--cpu says more): {answer}", answer=answer))  # fmt: skip


def headline(plan: MemoryPlan) -> str:
    """Return whether it fits, and the peak that this rests on; without a device which size of card it takes."""
    if plan.card is not None:
        return _together(_answer(plan), _peak_there(plan))
    if plan.card_sizes is None:
        return _together(_peak(plan), t("This machine's memory could not be read."))
    return _together(*_size(plan, plan.card_sizes), _peak(plan))


def _together(*sentences: Text) -> str:
    """Return sentences one behind the other; no space stands behind a Chinese full stop."""
    return " ".join(map(say, sentences)).replace("。 ", "。")


def _answer(plan: MemoryPlan) -> Text:
    if plan.host_is_short:
        return t("It does not fit: the host's memory is too small for what is to lie there.")
    if plan.fits and plan.sure_batch:
        return t("It should fit, but the high end of the range does not: to be sure, a micro-batch of {batch}.", batch=plan.sure_batch)  # fmt: skip
    if plan.fits:
        return t("It fits.") if plan.surely else t("It should fit, but the high end of the range does not.")
    if plan.remedies and plan.remedies[-1].fits:
        return t("It does not fit as asked, but does with what is listed below.")
    return (
        t("It does not fit.")
        if plan.surely
        else t("It does not fit by the expected peak; the low end of the range would.")
    )


def _size(plan: MemoryPlan, sizes: CardSizes) -> Iterator[Text]:
    """Yield which card to take; of several together each takes as much."""
    surely, expected = sizes.surely, sizes.expected
    if expected is None:
        yield t("It fits no card of the table, of which the largest has {size} GB: --gpu {size}GB shows what to turn on.", size=sizes.largest_gb)  # fmt: skip
        return
    if surely is None:
        yield t("It takes a card with {size} GB ({names}), and is tight there: the high end of the range does not fit.",
                size=expected.memory_gb, names=_names(expected))  # fmt: skip
        return
    each = plan.request.cards
    if each > 1:
        yield t("Each of the {count} cards must have {size} GB ({names}).", count=each, size=surely.memory_gb, names=_names(surely))  # fmt: skip
    else:
        yield t(
            "It fits a card with {size} GB or more ({names}).", size=surely.memory_gb, names=_names(surely)
        )
    if expected.memory_gb < surely.memory_gb:
        yield t("With {size} GB ({names}) it is tight.", size=expected.memory_gb, names=_names(expected))


def _names(size: CardSize) -> str:
    return ", ".join(short_name(name) for name in size.names)


def _peak(plan: MemoryPlan) -> Text:
    found = plan.estimate
    return t("Peak: {peak} ({low} to {high}).", peak=human_bytes(found.peak_bytes),
             low=human_bytes(found.low_bytes), high=human_bytes(found.high_bytes))  # fmt: skip


def _peak_there(plan: MemoryPlan) -> Text:
    found, card = plan.estimate, plan.card
    assert card is not None
    words = {
        "peak": human_bytes(found.peak_bytes), "low": human_bytes(found.low_bytes), "high": human_bytes(found.high_bytes),
        "free": human_bytes(card.free_bytes), "total": human_bytes(card.total_bytes), "name": short_name(card.name),
    }  # fmt: skip
    if card.name == CPU:
        return t(
            "Peak: {peak} ({low} to {high}), of {free} of memory that can be had here ({total} in all).",
            **words,
        )
    if plan.card_is_named:
        return t("Peak: {peak} ({low} to {high}); of its memory {name} leaves a process {free}.", **words)
    return t("Peak: {peak} ({low} to {high}), of {free} free on {name} ({total} in all).", **words)
