"""A finding's cure on the screen: shown, asked for, done, taken back; and the same for real on a small home."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.model import Fix, SetVariable, WriteFile, t
from doctor.tui.live import LiveSource
from tests.tui.driving import NARROW, WIDE, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import CAUSE, RecordedSource, unread_driver
from tests.tui.recorded import report as made_report
from tests.wheels import make_venv


@pytest.fixture
def source() -> RecordedSource:
    found = RecordedSource()
    steps = (SetVariable(name="A", value="1", file="/root/env.sh"), WriteFile(path="/root/b", content="x"))
    found.fixes[CAUSE.id] = Fix(id=CAUSE.id, title=t("Install the torch for this driver"), steps=steps)
    return found


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
async def test_the_plan_is_shown_step_by_step_before_anything(
    source: RecordedSource, size: tuple[int, int]
) -> None:
    async with driven(source, size) as pilot:
        await settled(pilot)
        await press(pilot, "f")
        text = await sees(
            pilot, "Install the torch for this driver", "1. set A=1", "can be undone", "+ line 1"
        )
        assert "2. write /root/b" in text
        assert source.applied == []


async def test_a_plan_that_is_longer_than_the_screen_is_read_from_its_beginning(
    source: RecordedSource,
) -> None:
    long = tuple(WriteFile(path=f"/root/{number}", content="x") for number in range(30))
    source.fixes[CAUSE.id] = Fix(id=CAUSE.id, title=t("Write thirty files"), steps=long)
    async with driven(source, NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "f")
        await sees(pilot, "Write thirty files")
        await settled(pilot)
        await pilot.pause(0.1)
        assert "Write thirty files" in screen_text(pilot)


async def test_it_is_done_only_on_a_yes_and_the_machine_is_shown_judged_again(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "f")
        await sees(pilot, "1. set A=1")
        await press(pilot, "a")
        await sees(pilot, "Carry out 2 steps")
        await press(pilot, "n")
        assert source.applied == []
        await press(pilot, "a")
        await press(pilot, "y")
        await sees(pilot, "1. done: a step", "doctor undo 7", "FAIL -> gone")
        assert source.applied == [CAUSE.id]
        assert "a Apply" not in keys_shown(pilot)
        examined = source.examined
        await press(pilot, "escape")
        text = await sees(pilot, "/dev/shm has only")
        assert "Driver 550.90" not in text
        assert source.examined == examined


async def test_it_is_taken_back_by_a_key(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "f")
        assert "u Undo" not in keys_shown(pilot)
        await press(pilot, "a")
        await press(pilot, "y")
        await sees(pilot, "doctor undo 7")
        await press(pilot, "u")
        await sees(pilot, "Take change 7 back?")
        await press(pilot, "y")
        await sees(pilot, "taken back")
        assert source.undone == ["7"]
        await press(pilot, "escape")
        await sees(pilot, "Driver 550.90")


async def test_what_has_no_fix_says_why_and_cannot_be_applied(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "down")
        await press(pilot, "f")
        await sees(pilot, "only the provider can change it")
        assert "Apply" not in keys_shown(pilot)
        await press(pilot, "a")
        assert source.applied == []


async def test_trouble_while_it_works_is_shown_and_can_be_tried_again(source: RecordedSource) -> None:
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "f")
        await sees(pilot, "1. set A=1")
        source.failure = OSError(28, "No space left on device")
        await press(pilot, "a")
        await press(pilot, "y")
        await sees(pilot, "No space left on device")
        assert "Apply" in keys_shown(pilot)


async def test_read_only_has_neither_fix_nor_deep_check(source: RecordedSource) -> None:
    async with driven(source, is_readonly=True) as pilot:
        await settled(pilot)
        assert "Fix" not in keys_shown(pilot)
        assert "Deep" not in keys_shown(pilot)
        await press(pilot, "f", "d")
        assert "Driver 550.90" in screen_text(pilot)
        assert "1. set A=1" not in screen_text(pilot)


async def test_an_item_that_is_no_finding_has_no_cure() -> None:
    async with driven(RecordedSource(made_report((), unanswered=(unread_driver(),)))) as pilot:
        before = await settled(pilot)
        assert await press(pilot, "f") == before


async def test_the_deep_check_shows_its_table(source: RecordedSource) -> None:
    async with driven(source, WIDE) as pilot:
        await settled(pilot)
        await press(pilot, "d")
        await sees(pilot, "torch really used", "failed", "Driver 550.90")


async def test_a_section_that_nothing_hangs_on_is_named_when_it_could_not_be_read() -> None:
    async with driven(RecordedSource(made_report(unread=(unread_driver(),)))) as pilot:
        await settled(pilot)
        await press(pilot, "end")
        await sees(pilot, "could not look at: driver (NVML did not answer")


def test_for_real_a_variable_is_unset_judged_again_and_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text("# mine\n")
    make_venv(tmp_path / "venv", tmp_path)
    for name, value in (("HOME", home), ("XDG_STATE_HOME", home / "state"), ("VIRTUAL_ENV", tmp_path / "venv"),
                        ("CUDA_LAUNCH_BLOCKING", "1")):  # fmt: skip
        monkeypatch.setenv(name, str(value))
    for name in ("XDG_CONFIG_HOME", "DOCTOR_STATE", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    before = {path: path.read_bytes() for path in home.iterdir() if path.is_file()}
    source = LiveSource()
    examination = source.examine()
    finding = next(one for one in examination.report.findings() if one.id == "debug-variable-left-on")
    plan = source.plan_fix(examination, finding.id, finding.subject)
    assert plan is not None
    assert any("unset CUDA_LAUNCH_BLOCKING" in line for lines in plan.previews for line in lines)
    told: list[str] = []
    cured = source.apply_fix(examination, plan.proposal, told.append)
    assert (cured.outcome, cured.why) == ("done", None)
    assert told
    assert [(turn.id, turn.after) for turn in cured.turns] == [(finding.id, None)]
    assert cured.examination is not None
    assert finding.id not in {one.id for one in cured.examination.report.findings()}
    undone = source.undo_fix(cured.examination, cured.change, told.append)
    assert undone.outcome == "undone"
    assert undone.examination is not None
    assert finding.id in {one.id for one in undone.examination.report.findings()}
    assert {path: path.read_bytes() for path in home.iterdir() if path.is_file()} == before
