"""Looking back: every part of the run's screen shows the moment, by keys and by mouse, played and live."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from doctor.tui.run_screen import RunScreen
from tests.tui.driving import NARROW, WIDE, driven, keys_shown, lines, press, screen_text, sees, settled
from tests.tui.recorded import FRAMES, Clock, RecordedSource, RunBuilder

NAME = "quickstart-20261130-061500"


def told(path: Path) -> RunBuilder:
    """A run of 100 s: its GPU, its stacks and its evaluation are others in the second half."""
    run = RunBuilder(path).start(device="cuda:0").steps(49)
    run.gpu(gpus=[{"index": 0, "name": "FIRST CARD", "utilization_pct": 11.0}]).host()
    run.stacks(samples=50, errors=0, frames=[{**FRAMES[0], "function": "first_half"}])
    run.evaluation(49, 0.50, 1.1).steps(50, first=50)
    run.gpu(gpus=[{"index": 0, "name": "SECOND CARD", "utilization_pct": 99.0}]).host()
    run.stacks(samples=50, errors=0, frames=[{**FRAMES[0], "function": "second_half"}])
    return run


@pytest.fixture
def finished(tmp_path: Path) -> RecordedSource:
    run = told(tmp_path / NAME).finish(metrics={"accuracy": 0.5}, steps=99)
    return RecordedSource(runs=[run.run.path], clock=Clock(run.clock.now + 1e6))


def run_screen(pilot: Pilot[int]) -> RunScreen:
    assert isinstance(pilot.app.screen, RunScreen)
    return pilot.app.screen


async def test_everything_on_the_screen_shows_the_moment(finished: RecordedSource) -> None:
    async with driven(finished, WIDE, run=NAME) as pilot:
        await sees(pilot, "completed", "step 99/100", "SECOND CARD", "second_half", "◆ evaluation 1.1")
        await press(pilot, *["left_square_bracket"] * 5)
        text = await sees(pilot, "as it was 50 s after its start", "step 49/100", "FIRST CARD", "first_half")
        for later in ("SECOND CARD", "second_half", "99 %", "completed"):
            assert later not in text
        await press(pilot, "left_square_bracket")
        assert "evaluation" not in await sees(pilot, "step 40/100", "no stack sample yet")
        await press(pilot, "end")
        await sees(pilot, "completed", "step 99/100", "SECOND CARD", "second_half")


@pytest.mark.parametrize(
    ("keys", "step"),
    [(("left",), 98), (("left", "left"), 97), (("left_square_bracket",), 89), (("comma", "comma", "comma"), 96),
     (("home",), 0), (("home", "right_square_bracket"), 10), (("home", "full_stop", "full_stop"), 2),
     (("home", "right"), 1)],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)  # fmt: skip
async def test_keys_move_by_shares_and_by_seconds(
    finished: RecordedSource, keys: tuple[str, ...], step: int
) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed", "+01:40")
        await press(pilot, *keys)
        await sees(pilot, f"step {step}/100")


async def test_past_the_end_is_now(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        await press(pilot, "left", "right_square_bracket")
        text = await sees(pilot, "completed", "step 99/100")
        assert "as it was" not in text


async def test_a_click_on_the_bar_goes_there(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        text = await sees(pilot, "completed", "├")
        row = next(index for index, line in enumerate(text.splitlines()) if "├" in line)
        begin, end = lines(pilot)[row].index("├") + 1, lines(pilot)[row].index("┤") - 1
        await pilot.click(offset=((begin + end) // 2, row))
        await sees(pilot, "as it was 50 s after its start")
        row = next(index for index, line in enumerate(lines(pilot)) if "├" in line)
        await pilot.click(offset=(end, row))
        await sees(pilot, "completed")


async def test_playing_goes_on_by_itself_to_the_end(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        await press(pilot, "space")
        await sees(pilot, "▶ ×10")
        screen = run_screen(pilot)
        for _ in range(500):
            if screen.moment is not None and screen.span is not None and screen.moment > screen.span[0] + 9:
                break
            await pilot.pause(0.02)
        assert screen.moment is not None
        await press(
            pilot, "space", "v", "v", "v"
        )  # paused: at 600 a run of two minutes would be over before the third
        assert screen.speed == 3600
        await press(pilot, "space")
        await sees(pilot, "completed", "step 99/100")
        assert not screen.is_playing


async def test_space_stops_where_it_is(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        await press(pilot, "space")
        await sees(pilot, "▶ ×10")
        await press(pilot, "space")
        assert "×10" not in screen_text(pilot)
        here = run_screen(pilot).moment
        await pilot.pause(1.2)
        assert run_screen(pilot).moment == here is not None


async def test_a_live_run_is_looked_back_on_while_it_goes_on(tmp_path: Path) -> None:
    run = told(tmp_path / "live")
    source = RecordedSource(runs=[run.run.path], clock=run.clock)
    source.is_alive = True
    async with driven(source, NARROW, run="live") as pilot:
        text = await sees(pilot, "running", "step 99/100")
        assert "├" not in text  # no bar of time before it is asked for
        await press(pilot, "left_square_bracket", "left_square_bracket")
        await sees(pilot, "as it was", "step 79/100", "├")
        run.steps(1, first=100)
        await pilot.pause(1.3)
        await sees(pilot, "step 79/100")
        await press(pilot, "end")
        await sees(pilot, "step 100/100")
        assert "├" not in screen_text(pilot)


async def test_keys_of_time_are_shown_where_there_is_a_past(tmp_path: Path, finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        shown = await settled(pilot) and keys_shown(pilot)
        assert "← → Time" in shown and "Space Play" in shown and "p Pause" not in shown
        assert "End Now" not in shown
        await press(pilot, "left")
        await sees(pilot, "End Now", "v Speed")
    new = RunBuilder(tmp_path / "new")
    async with driven(RecordedSource(runs=[new.run.path], clock=new.clock), NARROW, run="new") as pilot:
        await sees(pilot, "no events yet")
        assert "Time" not in keys_shown(pilot)


async def test_acting_keys_mean_the_run_as_it_is_not_as_it_was(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        await press(pilot, "left")
        await sees(pilot, "running", "as it was")
        assert "s Stop" not in keys_shown(pilot)


async def test_what_cannot_be_looked_up_says_why_and_the_screen_stays(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        events = finished.run_paths[NAME] / "events" / "sampler.jsonl"
        events.unlink()
        events.mkdir()
        await press(pilot, "left")
        await sees(pilot, "Is a directory", "step 99/100")


async def test_what_nobody_recorded_is_not_looked_back_on(tmp_path: Path) -> None:
    class Unrecorded(RecordedSource):
        def past(self, name: str) -> None:  # type: ignore[override]
            return None

    run = told(tmp_path / "job").finish()
    async with driven(Unrecorded(runs=[run.run.path], clock=run.clock), NARROW, run="job") as pilot:
        text = await sees(pilot, "completed", "step 99/100")
        assert "├" not in text
        assert "Time" not in keys_shown(pilot)
        await press(pilot, "left", "space", "home")
        assert "as it was" not in screen_text(pilot)


async def test_home_and_end_scroll_other_screens_as_before(finished: RecordedSource) -> None:
    async with driven(finished, NARROW) as pilot:
        await sees(pilot, "550.90")
        await press(pilot, "question_mark", "end")
        await sees(pilot, "process gone")
        await press(pilot, "home")
        await sees(pilot, "Leaving never ends a run")
