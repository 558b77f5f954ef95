"""Where going on to the bit was refused, the screen offers to go on approximately, and says what that means before it does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from runner.text import Text, t
from tests.tui.driving import driven, keys_shown, press, sees
from tests.tui.recorded import RecordedSource, RunBuilder

REFUSED = t("cannot continue to the bit here ({differences}); --approximate continues anyway",
            differences="torch: 2.6.0 -> 2.7.0")  # fmt: skip


def ended(path: Path, why: Text) -> RecordedSource:
    run = RunBuilder(path / "r").start().steps(5)
    run.finish("failed", error=str(why), error_text=msgspec.to_builtins(why))
    return RecordedSource(runs=[run.run.path], clock=run.clock)


async def test_a_refused_resume_can_be_an_approximate_one(tmp_path: Path) -> None:
    source = ended(tmp_path, REFUSED)
    async with driven(source, run="r") as pilot:
        await sees(pilot, "torch: 2.6.0 -> 2.7.0")
        assert "A Resume approximately" in keys_shown(pilot)
        await press(pilot, "A")
        await sees(pilot, "although it cannot go on to the bit", "may be others")
        await press(pilot, "n")
        assert source.resumed == []
        await press(pilot, "A", "y")
        assert source.resumed == ["r --approximate"]


@pytest.mark.parametrize(
    ("why", "is_readonly"),
    [(t("CUDA out of memory"), False), (REFUSED, True)],
    ids=["another reason", "read-only"],
)
async def test_elsewhere_there_is_no_such_key(tmp_path: Path, why: Text, is_readonly: bool) -> None:
    source = ended(tmp_path, why)
    async with driven(source, run="r", is_readonly=is_readonly) as pilot:
        await sees(pilot, "failed")
        assert "approximately" not in keys_shown(pilot)
        await press(pilot, "A", "y")
        assert source.resumed == []


def test_the_refusal_is_known_by_the_words_of_the_trainer() -> None:
    """The screen knows the refusal by its msgid: the trainer must still say it so."""
    from doctor.tui.run_acts import REFUSED as BEGINNING

    trainer = Path(__file__).parents[2] / "runner" / "exactness.py"
    assert f'"{BEGINNING}' in trainer.read_text("utf-8")
    assert REFUSED.msgid.startswith(BEGINNING)
