"""A few pictures of whole screens, drawn by one pinned textual; everything else is asserted as text."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.pilot import Pilot

from doctor.tui.app import DoctorApp
from tests.tui.driving import NARROW, WIDE, sees
from tests.tui.recorded import Clock, RecordedSource, report, unread_driver, whole_run

DRAWN_BY = "8.2.8"
"""The pictures are this textual's; another one draws other SVG for the same screen."""
pytestmark = pytest.mark.skipif(
    version("textual") != DRAWN_BY, reason=f"the pictures were drawn by textual {DRAWN_BY}"
)
Compare = Callable[..., bool]


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
def test_picture_of_the_machine(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def wait(pilot: Pilot[int]) -> None:
        await sees(pilot, "Driver 550.90", "2 checks passed")

    app = DoctorApp(RecordedSource(report(unanswered=(unread_driver(),))))
    assert snap_compare(app, terminal_size=size, run_before=wait)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
def test_picture_of_a_finished_run(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    run = whole_run(tmp_path / "quickstart-20261130-061500")
    source = RecordedSource(runs=[run.run.path], clock=Clock(run.clock.now + 60))

    async def wait(pilot: Pilot[int]) -> None:
        await sees(pilot, "learning rate", "100/100")

    app = DoctorApp(source, clock=source.clock, run=run.run.name)
    assert snap_compare(app, terminal_size=size, run_before=wait)
