"""Any size of terminal: nothing raises, nothing hangs, and what fits is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.driving import driven, press, sees, settled
from tests.tui.recorded import Clock, RecordedSource, report, unread_driver, whole_run


@pytest.mark.parametrize(
    "size", [(1, 1), (9, 3), (20, 5), (40, 12), (119, 10), (120, 11), (400, 120)], ids=str
)
async def test_every_screen_lives_at_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    run = whole_run(tmp_path / "quickstart")
    source = RecordedSource(
        report(unanswered=(unread_driver(),)), runs=[run.run.path], clock=Clock(run.clock.now)
    )
    async with driven(source, size) as pilot:
        await settled(pilot)
        await press(pilot, "e", "end", "home")
        for keys in (
            ("2", "enter"),
            ("3", "enter"),
            ("tab", "tab", "tab", "g"),
            ("question_mark", "end"),
            ("l",),
        ):
            await press(pilot, *keys)
        await pilot.resize_terminal(80, 24)
        await press(pilot, "escape", "1")
        await sees(pilot, "Driver 550.90")
        await pilot.press("q")
    assert pilot.app.return_code == 0


@pytest.mark.parametrize("width", [60, 80, 100, 119])
async def test_no_row_of_a_sentence_is_cut_at_the_edge(width: int) -> None:
    async with driven(RecordedSource(report(unanswered=(unread_driver(),))), (width, 40)) as pilot:
        text = " ".join((await settled(pilot)).replace("▌", " ").split())
    assert "driver could not be read: NVML did not answer within 5 s. 2 checks have no answer." in text
    assert "→ Install a torch built for CUDA 12.4: `pip install torch --index-url URL`" in text


async def test_a_phone_sized_screen_still_shows_the_run_and_the_way_to_help(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "quickstart")
    source = RecordedSource(runs=[run.run.path], clock=Clock(run.clock.now))
    async with driven(source, (40, 10), run="quickstart") as pilot:
        await sees(pilot, "100/100")
        await press(pilot, "f8")
        text = await sees(pilot, "so far", "+01:42 ✓ completed")  # the newest events
        rows = text.splitlines()
        assert rows[0].split() == ["doctor", "1", "2", "[3", "Runs]", "4"]
        assert rows[-1].startswith("? Help")
        assert len(rows) == 10
