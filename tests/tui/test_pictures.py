"""Pictures of the machine screen, drawn by one pinned textual; everything else is asserted as text.

The run screen has none: its charts are drawn once more when a scroll bar goes, a column wider, whenever that is.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest
from textual.pilot import Pilot

from doctor.tui.app import DoctorApp
from tests.tui.driving import NARROW, WIDE, at_rest, sees
from tests.tui.recorded import RecordedSource, report, unread_driver

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
        await at_rest(pilot)

    app = DoctorApp(RecordedSource(report(unanswered=(unread_driver(),))))
    assert snap_compare(app, terminal_size=size, run_before=wait)
