"""The cards as the sampler saw them: a block each, or a row each where there are many; what was not read says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import display_width, human_bytes, human_seconds, indent
from doctor.tui.view import RunView
from doctor.tui.widgets.foretold import foretold_rows
from doctor.tui.widgets.gpu_processes import process_rows
from doctor.tui.widgets.gpu_values import activity_words, card_values, labels, value_of
from doctor.tui.widgets.panel_rows import bar_row, label_row, memory_row, plain, unknown, unread_rows
from doctor.tui.widgets.xid_rows import xid_rows
from doctor.tui.words import one_line
from runner.events import number
from runner.strings import printable
from runner.text import t

CARDS_IN_ONE_ROW = 3
"""From so many cards on each takes one row, so that eight of them are seen at once."""
NORMAL_REASONS = ("idle", "power-cap", "applications-clocks", "sync-boost", "display-clocks")
"""Reasons for a lower clock that nobody has to do anything about."""


def gpu_rows(view: RunView, width: int) -> Iterator[Styled]:
    """Yield the cards, and the processes on them."""
    yield Styled("GPU", "bold")
    gpus = view.gpus.get("gpus")
    if isinstance(gpus, list) and gpus:
        cards = [gpu for gpu in gpus if isinstance(gpu, dict)]
        yield from _age(view, width)
        for card in cards:
            yield from _block(card, view, width) if len(cards) < CARDS_IN_ONE_ROW else _row(card, width)
        yield from _missing(cards, width)
        yield from xid_rows(view, width)
        yield from process_rows(view, width)
    elif view.gpus.get("why"):
        yield from unknown(say(t("could not be read: {why}", why=one_line(view.gpus["why"]))), width)
    elif view.gpus:
        yield Styled(say("this machine shows no NVIDIA GPU"))
    else:
        yield Styled(say("no sample yet"), "dim")
    yield from _promised(view, width)


def _age(view: RunView, width: int) -> Iterator[Styled]:
    """Yield how old the cards' values are, where the newest look could not read them."""
    seen_at = number(view.gpus.get("seen_at"))
    if seen_at is not None:
        why = one_line(view.gpus.get("why")) or "?"
        age = human_seconds(max(0.0, (view.last_t or seen_at) - seen_at))
        yield from unknown(say(t("as they were {time} ago; now: {why}", time=age, why=why)), width)


# -- one card
def _block(card: dict[str, Any], view: RunView, width: int) -> Iterator[Styled]:
    yield Styled(f"{plain(card.get('index'))}  {printable(str(card.get('name') or 'GPU'))}")
    utilization = number(card.get("utilization_pct"))
    if utilization is not None:
        yield bar_row(say("utilisation"), f"{utilization:.0f} %", utilization / 100, width)
    used, total = number(card.get("memory_used_bytes")), number(card.get("memory_total_bytes"))
    if used is not None:
        yield memory_row(say("memory"), used, total, width)
    heat = list(_heat(card))
    if heat:
        yield label_row("", " · ".join(heat))
    yield from _throttled(card, width)
    for value in card_values():
        read = [value_of(card.get(key)) for key in value.keys]
        if any(one is not None for one in read):
            yield label_row(value.label, value.words(read))
    if errors := number(card.get("nvlink_errors")):
        yield label_row(
            "", say(t("NVLink errors since the driver was loaded: {count}", count=int(errors))), "yellow"
        )
    yield from _lost(card)
    yield from unread_rows(card.get("unread"), labels(), width)


def _row(card: dict[str, Any], width: int) -> Iterator[Styled]:
    """Yield one card in one row: index, utilisation, memory, temperature, power, clock, throttling."""
    utilization = number(card.get("utilization_pct"))
    used, total = number(card.get("memory_used_bytes")), number(card.get("memory_total_bytes"))
    share = "  ?  " if utilization is None else f"{utilization:3.0f} %"
    row = Styled.assemble((f"{plain(card.get('index')):>2} ", "bold"), (share, "bold"), "  ")
    row.append(f"{human_bytes(used)} / {human_bytes(total)}  " + " · ".join(_heat(card)))
    for words, style in _signs(card):
        if row.cell_len + 2 + display_width(words) > width:
            yield row
            row = Styled("  ")
        row.append("  " + words, style)
    yield row
    yield from _activity_row(card, width)
    yield from _lost(card)


def _signs(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is to be known of a card among many, in a word each, with its style."""
    bad = [reason for reason in _reasons(card) if reason not in NORMAL_REASONS]
    if bad:
        yield "! " + ", ".join(bad), "yellow"
    if errors := number(card.get("ecc_uncorrected_volatile")):
        yield f"! ECC {errors:.0f}", "bold red"
    if errors := number(card.get("nvlink_errors")):
        yield f"! NVLink {errors:.0f}", "yellow"
    if card.get("mig_enabled") is True:
        yield "MIG", ""


def _activity_row(card: dict[str, Any], width: int) -> Iterator[Styled]:
    """Yield what a card among many does besides, where it does anything."""
    if parts := list(activity_words(card)):
        row = Styled("   ", "dim")
        for words in parts:
            if row.cell_len + display_width(words) > width:
                yield row
                row = Styled("   ", "dim")
            row.append(words + "  ")
        yield row


def _lost(card: dict[str, Any]) -> Iterator[Styled]:
    if card.get("error"):
        yield Styled(f"   ✗ {one_line(card['error'])}", "bold red")


def _heat(card: dict[str, Any]) -> Iterator[str]:
    temperature, power, limit = (
        number(card.get(key)) for key in ("temperature_c", "power_w", "power_limit_w")
    )
    clock = number(card.get("sm_clock_mhz"))
    if temperature is not None:
        yield f"{temperature:.0f} °C"
    if power is not None:
        yield f"{power:.0f} W" + (f" / {limit:.0f} W" if limit else "")
    if clock is not None:
        yield f"{clock:.0f} MHz"


def _reasons(card: dict[str, Any]) -> list[str]:
    reasons = card.get("throttle_reasons")
    return [printable(str(reason)) for reason in reasons] if isinstance(reasons, list) else []


def _throttled(card: dict[str, Any], width: int) -> Iterator[Styled]:
    """Yield why the clock is lower than it could be, in words; what is normal is not alarmed about."""
    for reason in _reasons(card):
        words = {
            "idle": say("nothing to do"),
            "power-cap": say("at its power limit, as is normal under full load"),
            "sw-thermal": say("too hot: the driver lowers its clock"),
            "hw-thermal": say("much too hot: the card itself lowers its clock"),
            "power-brake": say("the machine asks it to draw less power"),
            "hw-slowdown": say("the card itself lowers its clock: heat or power"),
            "applications-clocks": say("its clock was set lower by hand"),
            "sync-boost": say("it waits for the slowest card of its group"),
        }.get(reason, "")
        line = f"{reason} ({words})" if words else reason
        if reason in NORMAL_REASONS:
            yield label_row(say("clock held by"), line)
        else:
            for index, part in enumerate(indent(line, width - 14, "", "")):
                yield label_row(say("throttled") if index == 0 else "", part, "yellow")


def _missing(cards: list[dict[str, Any]], width: int) -> Iterator[Styled]:
    """Yield what no card has been asked for: the sampler of that run did not read it."""
    known = {key for card in cards for key in (*card, *(card.get("unread") or ()))}
    absent = [value.label for value in card_values() if not known.intersection(value.keys)]
    if absent and not all(card.get("error") for card in cards):
        words = say(t("not sampled in this run: {names}", names=", ".join(absent)))
        yield from (Styled(line, "dim") for line in indent(words, width, "", "  "))


# -- what was promised
def _promised(view: RunView, width: int) -> Iterator[Styled]:
    """Yield what the plan said of the card's memory, and how much of the card's rate the model gets."""
    expected = view.expected
    if expected is not None and expected.memory_peak_bytes is not None:
        low, peak = human_bytes(expected.memory_low_bytes), human_bytes(expected.memory_peak_bytes)
        words = say(t("peak of {peak}, at least {low}", peak=peak, low=low))
        yield label_row(say("predicted"), words)
    yield from foretold_rows(view, "cuda", width)
    if view.mfu is not None:
        yield label_row("MFU", f"{view.mfu:.1%}")
    elif view.mfu_why is not None and view.gpus.get("gpus"):
        yield from unknown(say(t("MFU: {why}", why=say(view.mfu_why))), width)
