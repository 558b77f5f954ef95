"""Snapshots listed, opened and written; two runs marked and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.tui.live import LiveSource
from tests.tui.driving import NARROW, WIDE, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import Clock, RecordedSource, whole_run


async def test_a_snapshot_is_opened_and_closed() -> None:
    async with driven(RecordedSource(), NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "4")
        await sees(pilot, "snapshots: 1", "known-good", "shipped", "torch 2.6")
        await press(pilot, "enter")
        await sees(pilot, "what known-good holds")
        await press(pilot, "enter")
        assert "what known-good holds" not in screen_text(pilot)


async def test_a_wide_screen_shows_the_one_under_the_cursor_beside_the_list() -> None:
    source = RecordedSource()
    source.exported.append("mine.json")
    async with driven(source, WIDE) as pilot:
        await settled(pilot)
        await press(pilot, "4")
        await sees(pilot, "│ what mine.json holds")
        await press(pilot, "down")
        text = await sees(pilot, "│ what known-good holds")
        assert "what mine.json holds" not in text


async def test_this_machine_is_written_and_listed() -> None:
    source = RecordedSource()
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "4")
        await press(pilot, "x")
        await sees(pilot, "written to doctor-snapshot-2026-11-30.json", "snapshots: 2", "this folder")


async def test_read_only_writes_no_snapshot() -> None:
    source = RecordedSource()
    async with driven(source, is_readonly=True) as pilot:
        await settled(pilot)
        await press(pilot, "4")
        await press(pilot, "x")
        assert source.exported == []
        assert "Export" not in keys_shown(pilot)


async def test_trouble_with_one_snapshot_stands_under_it_alone() -> None:
    source = RecordedSource()
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "4")
        await sees(pilot, "known-good")
        source.failure = OSError(13, "Permission denied")
        await press(pilot, "enter")
        await sees(pilot, "Permission denied", "snapshots: 1")


async def test_a_marked_run_is_compared_with_another(tmp_path: Path) -> None:
    one, other = whole_run(tmp_path / "one"), whole_run(tmp_path / "other")
    source = RecordedSource(runs=[one.run.path, other.run.path], clock=Clock(one.clock.now))
    async with driven(source) as pilot:
        await settled(pilot)
        await press(pilot, "3")
        await sees(pilot, "runs: 2")
        assert "Compare" not in keys_shown(pilot)
        await press(pilot, "m")
        await sees(pilot, "* one is marked")
        await press(pilot, "c")  # with itself: nothing to compare
        assert "* one is marked" in screen_text(pilot)
        await press(pilot, "down", "c")
        await sees(pilot, "one beside other")
        await press(pilot, "escape")
        await sees(pilot, "* one is marked")
        await press(pilot, "up", "m")
        await sees(pilot, "runs: 2, newest first")


def test_for_real_two_runs_are_compared(tmp_path: Path) -> None:
    paths = [str(whole_run(tmp_path / name).run.path) for name in ("one", "other")]
    text = "\n".join(LiveSource().compare(paths[0], paths[1], 78))
    assert "accuracy" in text
    assert "one" in text and "other" in text


def test_for_real_files_of_this_folder_come_before_those_that_ship(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doctor.machine import encode_snapshot
    from doctor.model import Snapshot
    from tests.tui.recorded import HEALTHY_FACTS

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").write_bytes(encode_snapshot(Snapshot(facts=HEALTHY_FACTS, label="rented")))
    (tmp_path / "other.json").write_text("[1, 2]")
    (tmp_path / "broken.json").write_text("{")
    rows = LiveSource().snapshots()
    assert [(row.name, row.label, row.origin) for row in rows[1:2]] == [("mine.json", "rented", "")]
    assert [row.key for row in rows if row.origin == "here"] == ["here"] == [rows[0].key]
    assert all(row.origin == "shipped" for row in rows[2:])
    assert LiveSource().snapshot_lines(rows[1].key, 78)
