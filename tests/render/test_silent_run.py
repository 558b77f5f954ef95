"""What is shown of a run that stands: where, what the kernel says of it, and the file with the whole stack; on every page."""

from __future__ import annotations

import pytest

from doctor.language import use_language
from doctor.render.run_page import as_html, as_markdown
from doctor.render.run_text import screen
from doctor.run_page import Page
from runner.events import RunEvent
from runner.state import RunState
from tests.runner.test_verdict import STEP, told
from tests.runner.test_verdict_silence import watched

WAITS = [{"pid": 4711, "state": "S", "call": "futex()"}]
STANDING = {"file": "stacks/silent-20261130-120000.txt", "waits": WAITS}
NOW = 1010.0 + 200


@pytest.fixture
def hung() -> RunState:
    return watched(told(split=STEP, seconds=10), 200.0, standing=STANDING)


def test_the_screen_says_where_it_hangs_and_where_the_stack_is(hung: RunState) -> None:
    text = "\n".join(screen("run", hung, "stalled", NOW, 100, 24))
    assert "hung: silent for 3 m 20 s, at work (train.py:9) all the time" in text
    assert "in your code: work (train.py:9)" in text
    assert "process 4711: futex(), state S" in text
    assert "stacks/silent-20261130-120000.txt" in text


def test_it_says_so_in_chinese(hung: RunState) -> None:
    use_language("zh")
    try:
        text = "\n".join(screen("run", hung, "stalled", NOW, 100, 24))
    finally:
        use_language("en")
    assert "卡死" in text and "完整的栈：stacks/silent-20261130-120000.txt" in text


def test_the_report_has_it_too(hung: RunState) -> None:
    page = Page("run", "stalled", hung, NOW, unread={"plan.json": "-", "snapshot.json": "-"})  # type: ignore[dict-item] # words are enough here
    for text in (as_html(page), as_markdown(page)):
        assert "hung: silent for 3 m 20 s" in text
        assert "silent-20261130-120000.txt" in text


def test_a_run_that_goes_on_shows_none_of_it(hung: RunState) -> None:
    hung.add(
        RunEvent(seq=0, t=NOW, source="trainer-0", kind="step", step=11, data={"loss": 1.0, "seconds": 200.0})
    )
    text = "\n".join(screen("run", hung, "running", NOW + 1, 100, 24))
    assert "hung" not in text and "silent-2026" not in text


def test_an_evaluation_under_way_says_how_far_it_is() -> None:
    state = told(split=STEP, seconds=10)
    state.add(
        RunEvent(seq=0, t=1030.0, source="trainer-0", kind="evaluating", data={"done": 30, "total": 100})
    )
    assert "evaluating: 30 of 100 batches" in "\n".join(screen("run", state, "running", 1031.0, 100, 24))
    state.add(
        RunEvent(seq=0, t=1040.0, source="trainer-0", kind="evaluation", step=10, data={"accuracy": 0.5})
    )
    assert "batches" not in "\n".join(screen("run", state, "running", 1041.0, 100, 24))
