"""Two environments held against each other on the screen: grouped by what it means for the result, and written to a file."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from doctor.machine import encode_snapshot
from doctor.model import Distribution, Packages, Snapshot, ok
from doctor.tui.live import LiveSource
from doctor.tui.widgets.difference_rows import difference_rows
from tests.tui.driving import NARROW, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import DIFFERENCE, HEALTHY_FACTS, RecordedSource


@pytest.fixture
def source() -> RecordedSource:
    source = RecordedSource()
    source.exported.append("mine.json")
    return source


async def test_one_is_marked_and_another_compared_worst_first(source: RecordedSource) -> None:
    async with driven(source, NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "4")
        await sees(pilot, "snapshots: 2")
        assert "Difference" not in keys_shown(pilot)
        await press(pilot, "m", "down")
        await sees(pilot, "* mine.json is marked", "d Difference")
        await press(pilot, "d")
        text = await sees(pilot, "mine.json -> known-good: other numbers expected", "4.48.0 -> 4.55.2")
        assert (
            text.index("transformers")
            < text.index("OMP_NUM_THREADS")
            < text.index("no effect on the numbers (1)")
        )
        assert "rich 14.0" not in text  # what has no effect is folded
        assert "driver: it was not read in a" in text
        await press(pilot, "end", "up", "enter")
        await sees(pilot, "rich  14.0 -> 15.0")
        await press(pilot, "escape")
        await sees(pilot, "* mine.json is marked")


async def test_the_difference_is_written_to_a_file(source: RecordedSource) -> None:
    async with driven(source, NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "4", "m", "down", "d")
        await sees(pilot, "other numbers expected")
        await press(pilot, "x")
        await sees(pilot, "written to doctor-diff-mine.json-known-good.json")


async def test_readonly_compares_and_writes_nothing(source: RecordedSource) -> None:
    async with driven(source, NARROW, is_readonly=True) as pilot:
        await settled(pilot)
        await press(pilot, "4", "m", "down", "d")
        await sees(pilot, "other numbers expected")
        assert "Write" not in keys_shown(pilot)
        await press(pilot, "x")
        assert source.exported == ["mine.json"]


async def test_one_that_cannot_be_read_says_why(source: RecordedSource) -> None:
    async with driven(source, NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "4", "m", "down")
        await sees(pilot, "d Difference")
        source.failure = OSError(13, "Permission denied", "mine.json")
        await press(pilot, "d")
        await sees(pilot, "Permission denied")
        assert "expected" not in screen_text(pilot)


def test_for_real_two_files_differ_as_the_command_says_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, version in (("a", "4.48.0"), ("b", "4.55.2")):
        packages = ok(Packages(items=(Distribution(name="transformers", version=version),)))
        facts = msgspec.structs.replace(HEALTHY_FACTS, packages=packages)
        (tmp_path / f"{name}.json").write_bytes(encode_snapshot(Snapshot(facts=facts)))
    found = LiveSource().difference("a.json", "b.json")
    assert [(one.subject, one.verdict) for one in found.differences] == [("transformers", "other-numbers")]
    path = LiveSource().export_difference(found)
    assert path == "doctor-diff-a-b.json"
    assert json.loads((tmp_path / path).read_text("utf-8"))["verdict"] == "other-numbers"


@pytest.mark.parametrize("width", [40, 78, 120, 158])
def test_where_there_is_room_the_reason_stands_beside_the_difference(width: int) -> None:
    rows = list(difference_rows(DIFFERENCE.differences, width))
    assert all(row.cell_len <= width for row in rows)
    [line] = [row.plain for row in rows if "OMP_NUM_THREADS" in row.plain and "8 -> -" in row.plain]
    assert ("decides" in line) == (width >= 78)


async def test_this_machine_is_named_for_people(source: RecordedSource) -> None:
    async with driven(source, NARROW) as pilot:
        pilot.app.open_difference("here", "known-good")  # type: ignore[attr-defined]
        await sees(pilot, "this machine -> known-good: other numbers expected")
