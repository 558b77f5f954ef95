"""The rows above a run: nothing of the progress is cut at any width; what waits, what is damaged and what comes at the end is said."""

from __future__ import annotations

from typing import Any

import pytest

from doctor import language
from doctor.tui.view import RunView
from doctor.tui.widgets.run_head import head_rows
from runner.text import t


def head(width: int = 80, **fields: Any) -> str:
    view = RunView("quickstart-20261130-061500", fields.pop("status", "running"), 1_790_000_000.0, **fields)
    return "\n".join(row.plain.rstrip() for row in head_rows(view, width))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 120, 160])
def test_progress_is_never_cut(width: int, lang: str, chinese: None) -> None:
    language.use_language(lang)
    view = RunView(
        "r", "running", 0.0, started={"epochs": 300}, last={"epoch": 0}, step=3, steps_total=34200, eta_s=221_400.0, elapsed_s=63.0
    )  # fmt: skip
    [progress] = [row for row in head_rows(view, width) if "/34200" in row.plain]
    assert progress.cell_len <= max(width, 30)
    left, least = ("61 小时 30 分", 80) if lang == "zh" else ("61 h 30 m", 60)
    assert (left in progress.plain) == (width >= least)


def test_in_how_many_processes_it_trains_is_said_beside_what_it_trains_on() -> None:
    started = {"model": "bert", "device": "cpu", "precision": "fp32", "hostname": "vm"}
    assert "bert · cpu · fp32 · 4 ranks · vm" in head(
        started=started, ranks={"ranks": [{"rank": n} for n in range(4)]}
    )
    assert "bert · cpu · fp32 · vm" in head(started=started)


def test_rows_that_are_got_ready_are_counted() -> None:
    preparing = {"what": "tokenising", "rows": 500, "rows_total": 2000, "rows_per_s": 100, "eta_seconds": 15}
    text = head(status="starting", started={"model": "m"}, preparing=preparing)
    assert "getting the rows ready: 500 of 2000, 100 rows/s, 15 s left" in text
    assert "starting: loading model and data" in head(status="starting", started={"model": "m"})


def test_a_damaged_run_says_what_is_damaged_and_not_that_it_has_begun() -> None:
    text = head(status="damaged", damage=(t("plan.json is cut off"),))
    assert "✗ plan.json is cut off" in text
    assert "just begun" not in text


def test_that_the_machine_will_be_switched_off_is_said_with_the_way_to_cancel_it() -> None:
    waiting = {
        "state": "waiting",
        "command": "shutdown -h now",
        "at": 1_790_000_120.0,
        "cancel": "/runs/r/cancel",
    }
    text = head(status="completed", started={"command": ["x"]}, step=9, on_finish=waiting)
    assert "! In 120 s: shutdown -h now (cancel: touch /runs/r/cancel)" in text


def test_why_it_ended_is_said_in_the_persons_language(chinese: None) -> None:
    language.use_language("zh")
    told = t(
        "cannot continue to the bit here ({differences}); --approximate continues anyway", differences="x"
    )
    text = head(
        status="failed",
        finished={"error": str(told), "error_text": {"msgid": told.msgid, "params": told.params}},
    )
    assert "--approximate" in text
    assert "cannot continue" not in text


def test_all_ranks_together_are_counted() -> None:
    ranks = {"world_size": 2, "tokens_per_s": 6000.0, "samples_per_s": None}
    text = head(step=3, started={"world_size": 2}, ranks=ranks)
    assert "tokens/s 6000" in text
    assert "samples/s" not in text
