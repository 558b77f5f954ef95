"""The answer of a comparison in a few lines: what to change, by how much, what it costs in memory, and whether the losses stay alike."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from doctor.bench_records import Comparison, Row
from doctor.bench_variants import CHANGED, ITSELF
from doctor.language import say
from doctor.profile_edit import toml_value
from doctor.render.layout import indent
from runner.text import Text, t

LESS_MEMORY = 0.95
"""Of before's, from which on a slower setting is worth naming for it."""


def answer_lines(found: Comparison, width: int) -> Iterator[str]:
    """Yield what a person in a hurry reads; nothing where nothing was measured."""
    if not any(row.speed for row in found.rows):
        return
    for text in _command(found) if found.is_command else _profile(found):
        yield from indent(say(text), width, "", "  ")
    if found.is_command and found.winners:
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in found.winners.items())
        yield f"  {variables} {found.model}"
    for text in _others(found):
        yield from indent(say(text), width, "", "  ")


def _profile(found: Comparison) -> Iterator[Text]:
    rows = {row.name: row for row in found.rows if row.speed is not None}
    if found.change:
        yield _change(settings_text(found.change), rows.get(CHANGED))
    if found.in_profile:
        names = ", ".join(f"{name} {speed_text(rows[name])}" for name in found.in_profile)
        yield t("Proven faster and the profile's way already: {names}", names=names)
    elif not found.change:
        yield t("Nothing was proven faster than before here.")
    if ITSELF in rows:
        yield t("The profile as it stands: {speed} of before, {cost}", speed=speed_text(rows[ITSELF]), cost=cost_text(rows[ITSELF]))  # fmt: skip


def _change(settings: str, row: Row | None) -> Text:
    """Say what to set, and what that does to the profile where it was measured."""
    if row is None or row.verdict == "too few pairs":
        return t("Change in this profile: {settings} (proven against before; not against the profile as it stands)", settings=settings)  # fmt: skip
    figures = {"settings": settings, "speed": speed_text(row), "cost": cost_text(row)}
    if row.verdict == "faster":
        return t("Change in this profile: {settings}: {speed} of the profile as it stands, {cost}", **figures)
    if row.verdict == "slower":
        return t("Leave the profile as it stands: {settings} is faster alone, but makes it slower ({speed}, {cost})", **figures)  # fmt: skip
    return t("{settings}: faster than before, but no proven difference to the profile as it stands ({speed}, {cost})", **figures)  # fmt: skip


def _command(found: Comparison) -> Iterator[Text]:
    won = [row for row in found.rows if row.verdict == "faster" and row.settings]
    for row in won:
        settings = " ".join(f"{name}={value}" for name, value in row.settings.items())
        if row.why is None:
            yield t("Proven faster: {settings}: {speed}, {cost}", settings=settings, speed=speed_text(row), cost=cost_text(row))  # fmt: skip
        else:
            yield t("Proven faster: {settings}: {speed}, {cost}; {changes}", settings=settings, speed=speed_text(row), cost=cost_text(row), changes=say(row.why))  # fmt: skip
    plain = next((row for row in found.rows if row.name == "plain" and row.speed is not None), None)
    if plain is not None and plain.verdict == "faster":
        yield t("Without what doctor run sets it is faster: {speed}, {cost}", speed=speed_text(plain), cost=cost_text(plain))  # fmt: skip
    elif plain is not None and plain.verdict == "slower":
        yield t("What doctor run sets helps: without it the command is {speed}, {cost}", speed=speed_text(plain), cost=cost_text(plain))  # fmt: skip
    if not won:
        yield t("No variable was proven to make it faster.")
    elif len(won) > 1:
        yield t("Each was measured alone; all of them together:")
    else:
        yield t("So:")


def _others(found: Comparison) -> Iterator[Text]:
    """Say of everything else that was measured how it came out."""
    rows = [row for row in found.rows if row.speed is not None and row.name not in (CHANGED, ITSELF)]
    names = {verdict: [row.name for row in rows if row.verdict == verdict] for verdict in ("no proven difference", "too few pairs")}  # fmt: skip
    slower = [
        f"{row.name} {speed_text(row)}{_less_memory(row)}"
        for row in rows
        if row.verdict == "slower" and row.name != "plain"
    ]
    beside = [row for row in rows if row.verdict == "faster" and row.settings and not row.settings.items() <= found.winners.items()]  # fmt: skip
    if beside:
        yield t("Faster as well, though tried as a contrast or for memory: {names}", names=", ".join(f"{row.name} {speed_text(row)}" for row in beside))  # fmt: skip
    if slower:
        yield t("Slower: {names}", names=", ".join(slower))
    if names["no proven difference"]:
        yield t("No proven difference: {names}", names=", ".join(names["no proven difference"]))
    if names["too few pairs"]:
        yield t("Too few pairs to say: {names}", names=", ".join(names["too few pairs"]))
    for row in rows:
        if row.loss == "differs":
            yield t("{name}: the loss of the same samples is not the same ({percent} apart): it computes something else or rounds too far, and is not recommended",
                    name=row.name, percent=percent_text(row))  # fmt: skip


def _less_memory(row: Row) -> str:
    if row.memory_ratio is None or row.memory_ratio > LESS_MEMORY:
        return ""
    return say(t(" for x{memory} the memory", memory=f"{row.memory_ratio:.2f}"))


def speed_text(row: Row) -> str:
    """Return ``x1.42 (1.31-1.55)``; without an interval it says that nothing is proven."""
    assert row.speed is not None, "only measured rows have a speed"
    if row.speed.low is None or row.speed.high is None:
        return say(t("x{ratio} (unproven)", ratio=f"{row.speed.ratio:.2f}"))
    return f"x{row.speed.ratio:.2f} ({row.speed.low:.2f}-{row.speed.high:.2f})"


def cost_text(row: Row) -> str:
    """Return what it costs in memory and whether the losses stay alike, as far as either is known."""
    parts = [] if row.memory_ratio is None else [say(t("x{memory} the memory", memory=f"{row.memory_ratio:.2f}"))]  # fmt: skip
    words = {
        "equal": t("losses equal"), "other rows": t("other rows, so losses are not compared"),
        "rounding": t("losses alike but for rounding ({percent})", percent=percent_text(row)),
        "differs": t("losses NOT alike ({percent})", percent=percent_text(row)),
        "not compared": t("losses not compared"),
    }  # fmt: skip
    return ", ".join([*parts, say(words[row.loss])])


def percent_text(row: Row) -> str:
    return f"{100 * (row.loss_difference or 0):.2g} %"


def settings_text(settings: dict[str, Any]) -> str:
    """Return settings as lines of a profile would have them; one that is to be taken out, with a minus before it."""
    return ", ".join(f"-{key}" if value is None else f"{key} = {toml_value(value)}" for key, value in settings.items())  # fmt: skip
