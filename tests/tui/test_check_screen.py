"""The machine screen: root cause first, evidence on demand, unknown never shown as fine."""

from __future__ import annotations

import threading

import pytest

from doctor.machine import BadSnapshot
from doctor.model import Facts, Finding, Gpus, Reading, Snapshot, ok, t
from doctor.tui.source import Examination
from doctor.tui.widgets.facts_panel import fact_rows
from tests.tui.driving import (
    NARROW,
    WIDE,
    click_word,
    driven,
    keys_shown,
    lines,
    press,
    screen_text,
    sees,
    settled,
)
from tests.tui.recorded import RecordedSource, report, unread_driver


async def test_the_root_cause_stands_above_its_symptom_with_its_evidence() -> None:
    async with driven(RecordedSource()) as pilot:
        text = await settled(pilot)
    order = ["Driver 550.90 cannot run", "driver.version = 550.90", "torch sees no GPU", "/dev/shm has only"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


async def test_the_judged_environment_is_named_on_the_first_line_under_the_bar() -> None:
    async with driven(RecordedSource()) as pilot:
        await settled(pilot)
        assert "/opt/venv/bin/python 3.11.9" in lines(pilot)[1]


async def test_levels_are_words_and_signs_not_colours_alone() -> None:
    async with driven(RecordedSource(report(unanswered=(unread_driver(),)))) as pilot:
        text = await settled(pilot)
    assert "✗ FAIL" in text
    assert "! WARN" in text
    assert "? unknown" in text


async def test_what_could_not_be_looked_at_is_named_with_its_reason_and_never_fine() -> None:
    source = RecordedSource(report((), passed=("disk_has_room",), unanswered=(unread_driver(),)))
    async with driven(source) as pilot:
        text = await settled(pilot)
        assert "NVML did not answer within 5 s" in text
        assert "2 checks could not look" in text
        assert "nothing wrong found in what could be looked at" in text
        assert "✓ nothing wrong found" not in text


async def test_a_check_of_ours_that_broke_is_no_pass() -> None:
    async with driven(RecordedSource(report((), crashed=("driver_runs_torch: KeyError",)))) as pilot:
        text = await settled(pilot)
    assert "please report it: driver_runs_torch" in text
    assert "✓ nothing wrong found" not in text


async def test_nothing_found_is_said_in_one_word_of_praise_and_one_line_of_passes() -> None:
    async with driven(RecordedSource(report((), passed=("a", "b", "c")))) as pilot:
        text = await settled(pilot)
    assert "✓ nothing wrong found" in text
    assert text.count("3 checks passed") == 2  # the summary and the list's last line


async def test_enter_folds_and_unfolds_the_finding_under_the_cursor() -> None:
    async with driven(RecordedSource()) as pilot:
        assert "driver.version = 550.90" in await settled(pilot)
        folded = await press(pilot, "enter")
        assert "driver.version = 550.90" not in folded
        assert "also explains 1: cuda-not-available" in folded
        unfolded = await press(pilot, "down", "enter")
        assert "storage.mounts[2].size_bytes = 67108864" in unfolded


async def test_a_click_unfolds_what_it_hits() -> None:
    async with driven(RecordedSource()) as pilot:
        await settled(pilot)
        assert "67108864" in await click_word(pilot, "/dev/shm has only")


async def test_a_high_screen_shows_every_finding_unfolded_at_once() -> None:
    async with driven(RecordedSource(), WIDE) as pilot:
        text = await settled(pilot)
    assert "driver.version = 550.90" in text
    assert "67108864" in text


async def test_e_unfolds_all_and_folds_all() -> None:
    async with driven(RecordedSource()) as pilot:
        await settled(pilot)
        assert "67108864" in await press(pilot, "e")
        assert "driver.version = 550.90" not in await press(pilot, "e")


async def test_r_looks_again_and_shows_what_changed() -> None:
    source = RecordedSource()
    async with driven(source) as pilot:
        await settled(pilot)
        source.judged = report(())
        assert "nothing wrong found" in await press(pilot, "r")
        assert source.examined == 2


async def test_the_screen_is_there_before_the_check_is_done() -> None:
    gate = threading.Event()

    class Slow(RecordedSource):
        def examine(self) -> Examination:
            assert gate.wait(30)
            return super().examine()

    async with driven(Slow()) as pilot:
        await sees(pilot, "looking at this machine", "Quit")
        await pilot.press("3")  # and keys work meanwhile
        await sees(pilot, "no run here yet")
        gate.set()
        await pilot.press("1")
        await sees(pilot, "Driver 550.90")


async def test_leaving_does_not_wait_for_a_look_that_hangs() -> None:
    gate = threading.Event()

    class Hung(RecordedSource):
        def examine(self) -> Examination:
            gate.wait(60)
            return super().examine()

    async with driven(Hung()) as pilot:
        await sees(pilot, "looking at this machine")
        await pilot.press("q")
    assert not gate.is_set()
    assert any(thread.name == "doctor-tui-check" and thread.daemon for thread in threading.enumerate())
    gate.set()


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (
            BadSnapshot(t("{file} is JSON, but not a doctor snapshot", file="x.json")),
            "x.json is JSON, but not",
        ),
        (FileNotFoundError(2, "No such file or directory", "gone.json"), "gone.json: No such file"),
    ],
    ids=["not-a-snapshot", "no-such-file"],
)
async def test_a_machine_that_cannot_be_read_is_one_sentence(failure: Exception, words: str) -> None:
    source = RecordedSource()
    source.failure = failure
    async with driven(source) as pilot:
        assert words in await settled(pilot)


HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] \x07[@click=app.quit]y[/]"


async def test_names_from_the_machine_are_shown_and_never_interpreted() -> None:
    finding = Finding(id="odd", level="warn", title=t("{name} is odd", name=HOSTILE))
    async with driven(RecordedSource(report((finding,))), WIDE) as pilot:
        text = await settled(pilot)
    assert "\\x1b[31mred\\x1b[0m [bold]x[/bold] \\x07[@click=app.quit]y[/] is odd" in text
    assert "\x1b" not in text


async def test_language_changes_live_everywhere(chinese: None) -> None:
    async with driven(RecordedSource()) as pilot:
        assert "机器" in await settled(pilot)
        assert "q 退出" in keys_shown(pilot)
        english = await press(pilot, "l")
        assert "Machine" in english
        assert "机器" not in english
        assert "q Quit" in keys_shown(pilot)
        assert "机器" in await press(pilot, "l")


async def test_every_key_of_the_bar_is_on_the_screen_at_80_columns() -> None:
    async with driven(RecordedSource(), NARROW) as pilot:
        await settled(pilot)
        for words in (
            "⏎ Open",
            "r Check again",
            "e Unfold all",
            "Tab Facts",
            "l 中文",
            "? Help",
            "q Quit",
            "^P Menu",
        ):
            assert words in screen_text(pilot)


async def test_a_finding_longer_than_the_screen_can_be_read_to_its_end_with_arrow_keys() -> None:
    long = Finding(
        id="long", level="fail", title=t("start"), advice=t("{words}", words="line\n" * 60 + "the end")
    )
    async with driven(RecordedSource(report((long,)))) as pilot:
        assert "the end" not in await settled(pilot)
        for _ in range(12):
            await pilot.press("down")
        assert "the end" in await sees(pilot, "the end")


async def test_facts_stand_beside_the_findings_on_a_wide_screen_and_behind_tab_on_a_narrow_one() -> None:
    async with driven(RecordedSource(), WIDE) as pilot:
        text = await settled(pilot)
        assert "Driver 550.90" in text
        assert "2.6.0+cu124" in text.split("\n", 2)[2]
    async with driven(RecordedSource(), NARROW) as pilot:
        assert "nobody looked" not in await settled(pilot)
        facts = await press(pilot, "tab")
        assert "nobody looked" in facts
        assert "Driver 550.90 cannot" not in facts
        assert "Driver 550.90 cannot" in await press(pilot, "tab")


async def test_a_fact_that_could_not_be_read_is_neither_absent_nor_skipped_nor_empty() -> None:
    facts = Facts(
        driver=Reading(status="failed", why=t("NVML hung")), torch=Reading(status="absent"), gpus=ok(Gpus())
    )
    rows = [row.plain for row in fact_rows(Snapshot(facts=facts), 80)]
    by_label = {row.split()[0]: row for row in rows}
    assert by_label["Driver"].endswith("? could not look: NVML hung")
    assert by_label["torch"].endswith("looked for, not there")
    assert by_label["Python"].endswith("nobody looked")
    assert by_label["GPU"].endswith("read; nothing to show")
