"""A list walked by pages: the cursor goes along, and what is longer than the screen is read on."""

from __future__ import annotations

from pathlib import Path

from doctor.model import Evidence, Finding, t
from tests.tui.driving import driven, lines, press, sees
from tests.tui.recorded import RecordedSource, RunBuilder, report


async def test_a_page_takes_the_cursor_with_it_and_comes_back(tmp_path: Path) -> None:
    runs = [RunBuilder(tmp_path / f"run-{number:02d}").run.path for number in range(60)]
    async with driven(RecordedSource(runs=runs)) as pilot:
        await press(pilot, "3")
        await sees(pilot, "runs: 60")
        await press(pilot, "pagedown", "pagedown")
        [line] = [line for line in lines(pilot) if line.startswith("▌")]
        shown = line.split()[3]
        assert int(shown.removeprefix("run-")) > 30
        await press(pilot, "pageup", "pageup")
        assert "▌ … starting  run-00" in await sees(pilot, "run-00")
        await press(pilot, "G")
        await sees(pilot, "▌ … starting  run-59")
        await press(pilot, "g")
        await sees(pilot, "▌ … starting  run-00")


async def test_a_page_reads_on_in_an_item_longer_than_the_screen() -> None:
    finding = Finding(id="long", level="warn", title=t("A long one"), evidence=tuple(
        Evidence(fact=f"fact.{number}", value="x") for number in range(60)))  # fmt: skip
    async with driven(RecordedSource(report((finding,)))) as pilot:
        await sees(pilot, "fact.0 = x")
        await press(pilot, "pagedown")
        await sees(pilot, "fact.20 = x")
        await press(pilot, "pagedown", "pagedown", "pagedown")
        await sees(pilot, "2 checks passed", "fact.59 = x")
