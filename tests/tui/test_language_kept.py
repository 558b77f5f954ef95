"""The language chosen with `l` is kept for later commands; where it cannot be, the screen says so and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.language import choose_language
from doctor.settings import read_setting, settings_path
from tests.tui.driving import driven, press, sees, settled
from tests.tui.recorded import RecordedSource


async def test_the_language_chosen_is_the_next_command_s(chinese: None) -> None:
    async with driven(RecordedSource()) as pilot:
        await settled(pilot)
        await press(pilot, "l")
        assert read_setting("lang") == "en"
        await press(pilot, "l")
    assert read_setting("lang") == "zh"
    assert choose_language(None, {"LANG": "en_US.UTF-8"}, read_setting("lang")) == "zh"


async def test_a_home_that_cannot_be_written_changes_the_language_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chinese: None
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DOCTOR_CONFIG_DIR", str(tmp_path / "file"))  # a file where the folder should be
    async with driven(RecordedSource()) as pilot:
        await settled(pilot)
        await press(pilot, "l")
        await sees(pilot, "the language is not kept")
    assert not Path(settings_path()).exists()
