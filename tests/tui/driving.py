"""Drives the app as a person does: press, click, read the screen as text, wait until it says something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from doctor.tui.app import DoctorApp
from tests.tui.recorded import RecordedSource

NARROW, WIDE = (80, 24), (160, 48)
PATIENCE_S = 10.0
_LOOK_EVERY_S = 0.02


@asynccontextmanager
async def driven(
    source: RecordedSource, size: tuple[int, int] = NARROW, **options: Any
) -> AsyncIterator[Pilot[int]]:
    """Run the app on ``source`` without a terminal."""
    app = DoctorApp(source, clock=source.clock, **options)
    async with app.run_test(size=size) as pilot:
        yield pilot


def screen_text(pilot: Pilot[int]) -> str:
    """Return what the screen shows, a line a row, trailing blanks cut."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


def lines(pilot: Pilot[int]) -> list[str]:
    return screen_text(pilot).splitlines()


def keys_shown(pilot: Pilot[int]) -> str:
    """Return the bar of keys."""
    from doctor.tui.widgets.bar import KeyBar

    return " ".join(pilot.app.screen.query_one(KeyBar).text.split())


async def sees(pilot: Pilot[int], *words: str) -> str:
    """Wait until all ``words`` stand on the screen and return its text; fail with the screen when they never do."""
    for _ in range(int(PATIENCE_S / _LOOK_EVERY_S)):
        if all(word in screen_text(pilot) for word in words):
            await pilot.pause()  # what was being laid out stands
            await pilot.pause()
            return screen_text(pilot)
        await pilot.pause(_LOOK_EVERY_S)
    missing = [word for word in words if word not in screen_text(pilot)]
    raise AssertionError(f"never seen: {missing}\n{screen_text(pilot)}")


async def settled(pilot: Pilot[int]) -> str:
    """Wait until nothing is being read or drawn and return the screen."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()
    return screen_text(pilot)


async def at_rest(pilot: Pilot[int]) -> str:
    """Wait until the screen has been the same for three looks: what a picture is taken of."""
    looks = [await settled(pilot)]
    for _ in range(int(PATIENCE_S / _LOOK_EVERY_S)):
        await pilot.pause(_LOOK_EVERY_S)
        looks = [*looks[-2:], await settled(pilot)]
        if len(looks) == 3 and len(set(looks)) == 1:
            return looks[-1]
    raise AssertionError(f"the screen never came to rest\n{looks[-1]}")


async def press(pilot: Pilot[int], *keys: str) -> str:
    await pilot.press(*keys)
    return await settled(pilot)


async def click_word(pilot: Pilot[int], word: str) -> str:
    """Click on the first place where ``word`` stands on the screen."""
    from doctor.render.layout import display_width

    for y, line in enumerate(lines(pilot)):
        if word in line:
            await pilot.click(offset=(display_width(line[: line.index(word)]), y))
            return await settled(pilot)
    raise AssertionError(f"{word} is not on the screen\n{screen_text(pilot)}")
