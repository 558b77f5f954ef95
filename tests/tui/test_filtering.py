"""`/` narrows a list to what holds the words, as it is typed; Escape shows all again; typing presses no key of the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.driving import WIDE, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import Clock, RecordedSource, RunBuilder, report, unread_driver, whole_run


@pytest.fixture
def source(tmp_path: Path) -> RecordedSource:
    done = whole_run(tmp_path / "done")
    runs = [done.run.path, *(RunBuilder(tmp_path / name).run.path for name in ("first-try", "second-try"))]
    return RecordedSource(report(unanswered=(unread_driver(),)), runs=runs, clock=Clock(done.clock.now))


async def test_findings_are_found_by_title_and_by_evidence(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await sees(pilot, "Driver 550.90", "/dev/shm")
        await press(pilot, "slash", *"67108864")  # evidence of a folded finding
        text = await sees(pilot, "/dev/shm")
        assert "Driver 550.90" not in text.partition("WARN 1")[2]
        await press(pilot, "escape")
        await sees(pilot, "Driver 550.90 cannot run", "/dev/shm")


async def test_typing_is_typing_and_no_key_of_the_screen(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await press(pilot, "3")
        await sees(pilot, "runs: 3")
        await press(pilot, "slash", *"qtry2m")
        await sees(pilot, "nothing here holds “qtry2m”; Esc shows all")
        shown = keys_shown(pilot)
        assert "Esc Show all" in shown
        assert "Quit" not in shown and "Mark" not in shown
        await press(pilot, *["backspace"] * 6, *"try", "enter")
        text = await sees(pilot, "first-try", "second-try")
        assert "100/100" not in text
        assert "q Quit" in keys_shown(pilot)
        await press(pilot, "down", "enter")
        await sees(pilot, "second-try", "Curves")


@pytest.mark.parametrize("size", [(80, 24), WIDE], ids=str)
async def test_a_list_read_again_stays_narrowed(
    source: RecordedSource, size: tuple[int, int], tmp_path: Path
) -> None:
    async with driven(source, size) as pilot:
        await press(pilot, "3")
        await sees(pilot, "runs: 3")
        await press(pilot, "slash", *"try", "enter")
        source.run_paths["third-try"] = RunBuilder(tmp_path / "third-try").run.path
        await press(pilot, "r")
        text = await sees(pilot, "runs: 4", "third-try", "second-try")
        assert "completed" not in text
        await press(pilot, "escape")
        await sees(pilot, "completed", "third-try")


async def test_a_list_of_one_has_no_filter() -> None:
    async with driven(RecordedSource()) as pilot:
        await press(pilot, "4")
        await sees(pilot, "known-good")
        assert "Filter" not in keys_shown(pilot)


async def test_what_is_copied_is_the_item_whole_and_plain(
    source: RecordedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    async with driven(source) as pilot:
        await sees(pilot, "Driver 550.90", "/dev/shm")
        await press(pilot, "down", "y")
        await sees(pilot, "3 lines sent to the terminal's")
        copied = pilot.app.clipboard
        assert copied.splitlines()[1].strip() == "storage.mounts[2].size_bytes = 67108864"
        assert "▌" not in copied
        assert "Driver" in screen_text(pilot)


async def test_of_a_run_the_head_and_the_page_are_copied(
    source: RecordedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    async with driven(source, run="done") as pilot:
        await sees(pilot, "step 100/100")
        await press(pilot, "f8", "y")
        await settled(pilot)
        assert "step 100/100" in pilot.app.clipboard
        assert "evaluation at step 50" in pilot.app.clipboard
