"""The lists of runs and of profiles, and moving between screens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from doctor.tui.source import PlanRow, Refused, Watcher
from tests.tui.driving import WIDE, click_word, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import Clock, RecordedSource, RunBuilder, whole_run


@pytest.fixture
def source(tmp_path: Path) -> RecordedSource:
    done = whole_run(tmp_path / "done")
    new = RunBuilder(tmp_path / "new")
    return RecordedSource(runs=[done.run.path, new.run.path], clock=Clock(done.clock.now))


async def test_keyboard_alone_reaches_a_run_and_comes_back(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "runs: 2, newest first", "completed", "100/100", "starting")
        await press(pilot, "enter")
        await sees(pilot, "step 100/100", "smoothed")
        await press(pilot, "1")
        await sees(pilot, "Driver 550.90")
        await press(pilot, "3")
        await sees(pilot, "smoothed")  # the run is still open under the list's name
        await press(pilot, "3")
        await sees(pilot, "runs: 2, newest first")


async def test_mouse_alone_reaches_a_run(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await click_word(pilot, "Runs")
        await sees(pilot, "runs: 2")
        await click_word(pilot, "done")
        await sees(pilot, "step 100/100", "smoothed")
        await click_word(pilot, "Esc Back")
        await sees(pilot, "runs: 2")


async def test_a_run_that_appears_is_listed_on_asking(source: RecordedSource, tmp_path: Path) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "runs: 2")
        third = RunBuilder(tmp_path / "third").start()
        source.run_paths["third"] = third.run.path
        await press(pilot, "r")
        await sees(pilot, "runs: 3", "third")


async def test_no_run_yet_says_how_to_begin() -> None:
    async with driven(RecordedSource()) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "no run here yet", "doctor run PROFILE")


async def test_a_profile_unfolds_into_its_plan_with_reasons(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await sees(pilot, "profiles: 2", "quickstart")
        await press(pilot, "enter")
        await sees(pilot, "train.precision", "bf16", "the card has bf16 (compute capability 8.9)")


async def test_starting_asks_first_then_watches_the_run(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await sees(pilot, "quickstart")
        await press(pilot, "s", "n")
        assert source.started == []
        await press(pilot, "s", "y")
        await sees(pilot, "step 100/100")
        assert source.started == ["quickstart"]


async def test_a_start_that_is_refused_names_every_reason(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await sees(pilot, "quickstart")
        source.failure = Refused(("torch is not installed", "the disk is full"))
        await press(pilot, "s", "y")
        await sees(pilot, "torch is not installed", "the disk is full")


async def test_a_plan_with_problems_shows_them_above_its_choices(source: RecordedSource) -> None:
    class Sick(RecordedSource):
        def plan(self, profile: str, changed: Sequence[str] = ()) -> PlanRow:
            return super().plan(profile, changed)._replace(problems=("there is no torch",))

    async with driven(Sick()) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await press(pilot, "enter")
        text = await sees(pilot, "✗ there is no torch", "train.precision")
        assert text.index("there is no torch") < text.index("train.precision")


async def test_readonly_cannot_start(source: RecordedSource) -> None:
    async with driven(source, is_readonly=True) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await sees(pilot, "quickstart")
        assert "Start run" not in keys_shown(pilot)
        await press(pilot, "s", "y")
        assert source.started == []


async def test_chinese_names_stay_in_their_columns(source: RecordedSource, chinese: None) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        text = await sees(pilot, "外卖评论情感", "训练计划")
        assert "外卖评论情感" in text


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_help_opens_over_any_screen_and_closes(source: RecordedSource, key: str) -> None:
    async with driven(source, WIDE) as pilot:
        await settled(pilot)
        await press(pilot, key)
        await sees(pilot, "Leaving never ends a run", "could not look: neither good nor bad", "Ctrl+P")
        await press(pilot, "escape")
        await sees(pilot, "Driver 550.90")


async def test_readonly_help_says_so_and_names_no_acting_key(source: RecordedSource) -> None:
    async with driven(source, WIDE, is_readonly=True) as pilot:
        await settled(pilot)
        await press(pilot, "question_mark")
        text = await sees(pilot, "Read-only")
        assert "stop the run" not in text
        assert "start a run" not in text


async def test_the_palette_finds_commands_by_name(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        await pilot.press(*"Runs")
        await sees(pilot, "watch a run, live or finished")
        await pilot.press("enter")
        await sees(pilot, "runs: 2")


async def test_a_list_that_cannot_be_read_says_why(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        source.failure = PermissionError(13, "Permission denied", "runs")
        await press(pilot, "3")
        await sees(pilot, "Permission denied")
        assert "no run here yet" not in screen_text(pilot)


@pytest.fixture
def stopped(tmp_path: Path) -> RecordedSource:
    half = RunBuilder(tmp_path / "half").start().steps(3).finish("stopped")
    done = whole_run(tmp_path / "done")
    return RecordedSource(runs=[half.run.path, done.run.path], clock=Clock(done.clock.now))


async def test_a_stopped_run_is_resumed_from_the_list_after_a_question(stopped: RecordedSource) -> None:
    async with driven(stopped) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "half", "R Resume")
        await press(pilot, "R", "n")
        assert stopped.resumed == []
        await press(pilot, "R", "y")
        await sees(pilot, "it loads its checkpoint and goes on")
        assert stopped.resumed == ["half"]
        await press(pilot, "down")
        await settled(pilot)
        assert "Resume" not in keys_shown(pilot)  # nothing is left to do of a completed one


async def test_a_resume_that_is_refused_says_why(stopped: RecordedSource) -> None:
    async with driven(stopped) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "half", "R Resume")
        await click_word(pilot, "R Resume")
        stopped.failure = Refused(("it seems to run elsewhere",))
        await click_word(pilot, "y Resume the run")
        await sees(pilot, "it could not be resumed: it seems to run elsewhere")


async def test_readonly_resumes_nothing(stopped: RecordedSource) -> None:
    async with driven(stopped, is_readonly=True) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "half")
        assert "Resume" not in keys_shown(pilot)
        await press(pilot, "R", "y")
        assert stopped.resumed == []


async def test_a_wide_list_shows_the_run_under_the_cursor_at_a_glance(source: RecordedSource) -> None:
    async with driven(source, WIDE) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "step 100/100", "smoothed", "accuracy 0.96")
        await press(pilot, "down")
        text = await sees(pilot, "no events yet: the run has just begun")
        assert "step 100/100" not in text
        await press(pilot, "tab")
        assert pilot.app.focused is not None and pilot.app.focused.id == "beside"
        await press(pilot, "tab")
        assert pilot.app.focused.id == "list"


async def test_a_run_at_a_glance_that_goes_on_is_looked_at_again(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "live").start(steps_total=20).steps(5)
    source = RecordedSource(runs=[run.run.path], clock=run.clock)
    source.is_alive = True
    async with driven(source, WIDE) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "step 5/20")
        run.steps(5, first=6)
        await press(pilot, "r")
        await sees(pilot, "step 10/20")


async def test_a_run_that_cannot_be_looked_at_says_why_beside_the_list(source: RecordedSource) -> None:
    class Unreadable(RecordedSource):
        def watch(self, name: str) -> Watcher:
            watcher = super().watch(name)
            watcher.settle = self.fail  # type: ignore[method-assign]
            return watcher

        def fail(self) -> None:
            raise PermissionError(13, "Permission denied", "events")

    async with driven(Unreadable(runs=list(source.run_paths.values()), clock=source.clock), WIDE) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "│ ✗ PermissionError", "runs: 2")


async def test_the_mouse_alone_changes_plans_and_starts(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await click_word(pilot, "2 Profiles")
        await click_word(pilot, "quickstart")
        await sees(pilot, "train.precision")
        await click_word(pilot, "c Change values")
        await sees(pilot, "train.epochs")
        await pilot.press("4")
        await click_word(pilot, "Plan with these")
        await sees(pilot, "* changed here: train.epochs=4")
        await click_word(pilot, "s Start run")
        await click_word(pilot, "y Start the run")
        await sees(pilot, "step 100/100")
    assert source.started == ["quickstart train.epochs=4"]
