"""What is told and when: new alerts once, the end always, never too often, and nothing that names this machine."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.alert_desk import IN_AN_HOUR, AlertDesk
from doctor.alert_words import Message, clean, end_of
from runner.alert_settings import AlertsSection
from runner.events import RunEvent
from runner.state import RunState, fold


def event(at: float, kind: str, step: int | None = None, **data: Any) -> RunEvent:
    source = "sampler" if kind.startswith("sample") else "trainer-0"
    return RunEvent(seq=0, t=at, source=source, kind=kind, step=step, data=data)


def running(loss: float | str = 0.5) -> RunState:
    return fold([event(0, "run-started", steps_total=10), event(1, "step", 3, loss=loss)])


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def desk(clock: Clock | None = None, **settings: Any) -> AlertDesk:
    return AlertDesk(
        AlertsSection(to=["bell"], **settings), "quickstart", clock=clock or Clock(), from_start=True
    )


def kinds(messages: list[Message]) -> list[str]:
    return [message.kind for message in messages]


def test_an_alert_is_told_once_while_it_lasts() -> None:
    told, state = desk(), running("nan")
    assert kinds(told.look(state, "running", False)) == ["non-finite"]
    assert told.look(state, "running", False) == []


def test_an_alert_that_comes_again_within_ten_minutes_is_held_back_and_counted() -> None:
    clock = Clock()
    told, bad, good = desk(clock), running("nan"), running()
    assert len(told.look(bad, "running", False)) == 1
    told.look(good, "running", False)
    clock.now = 300
    later = fold([event(300, "run-started"), event(301, "step", 4, loss="nan")])
    assert told.look(later, "running", False) == []
    told.look(good, "running", False)
    clock.now = 700
    latest = fold([event(700, "run-started"), event(701, "step", 5, loss="nan")])
    (message,) = told.look(latest, "running", False)
    assert message.text.endswith("(1 more was held back)")


def test_twenty_in_an_hour_are_enough_and_the_end_is_still_told() -> None:
    clock, told, count = Clock(), desk(), 0
    told._clock = clock
    for number in range(40):
        clock.now = number * 60.0
        for kind, state in (("stalled", "stalled"), ("", "running")):
            told._told_at.clear()  # as if each were of a kind of its own
            count += len(told.look(running(), state, False)) * bool(kind)
    assert count == IN_AN_HOUR
    over = fold([event(0, "run-started"), event(1, "run-finished", outcome="completed")])
    assert kinds(told.look(over, "completed", True)) == ["finished"]


def test_the_end_is_told_once_and_before_what_follows_it() -> None:
    told, state = desk(), running()
    told.look(state, "running", False)
    state.add(event(2, "run-finished", 10, outcome="completed", metrics={"accuracy": 0.91}))
    (message,) = told.look(state, "completed", False)  # its supervisor still lives: a shutdown may come next
    assert message.kind == "finished"
    assert "completed" in message.text and "accuracy 0.91" in message.text
    assert told.look(state, "completed", True) == []


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [("failed", "failed"), ("non-finite", "failed"), ("lost", "failed"), ("stopped", "finished")],
)
def test_how_it_ended_is_what_is_told(outcome: str, kind: str) -> None:
    told = desk()
    told.look(running(), "running", False)
    assert kinds(told.look(running(), outcome, True)) == [kind]


def test_a_run_that_was_over_when_somebody_looked_is_no_news() -> None:
    told = AlertDesk(AlertsSection(to=["bell"]), "old")
    over = fold(
        [event(0, "run-started"), event(1, "step", 1, loss="nan"), event(2, "run-finished", outcome="failed")]
    )
    assert told.look(over, "failed", True) == []


def test_only_the_kinds_asked_for() -> None:
    told = desk(kinds=["failed"])
    assert told.look(running("nan"), "running", False) == []
    assert kinds(told.look(running("nan"), "failed", True)) == ["failed"]


def test_a_stall_is_told_when_it_begins() -> None:
    told = desk()
    seen = [
        kinds(told.look(running(), status, False)) for status in ("running", "stalled", "stalled", "running")
    ]
    assert seen == [[], ["stalled"], [], []]


def test_nothing_that_names_machine_owner_or_key_is_said() -> None:
    state = running()
    error = "RuntimeError: cannot open /root/autodl-tmp/zhang/data/train.csv on gpu-box-7 with api_key=sk-abcdefghij0123456789abcdefghij"
    state.add(event(2, "run-finished", 3, outcome="failed", error=error))
    text = end_of(state, "failed", "quickstart", ("gpu-box-7",)).text
    assert "RuntimeError: cannot open .../train.csv on ***" in text
    for word in ("zhang", "autodl-tmp", "gpu-box-7", "sk-abcdef"):
        assert word not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("step 3/10 · loss 0.5", "step 3/10 · loss 0.5"), ("at /a/b.py:3", "at .../b.py:3"), ("see https://example.org/a/b", "see https://example.org/a/b"),
     ("\x1b[31mred", "\\x1b[31mred"), ("w" * 700, "w" * 599 + "…")],
)  # fmt: skip
def test_what_is_harmless_stays(text: str, shown: str) -> None:
    assert clean(text) == shown


def hanging(cpu_pct: float) -> RunState:
    """A run that told a step and has stood at one line for three minutes since."""
    state = running()
    frame = {
        "function": "wait",
        "file": "train.py",
        "line": 9,
        "self_share": 1.0,
        "total_share": 1.0,
        "process": "trainer",
    }
    for at in range(10, 180, 5):
        state.add(event(at, "sample-host", cpu_pct=cpu_pct))
        state.add(event(at, "sample-stacks", samples=50, looks=50, frames=[frame], phases={"other": 1.0}))
    return state


@pytest.mark.parametrize(
    ("cpu_pct", "told"), [(1.0, ["stalled", "hung"]), (100.0, ["stalled"])], ids=["it stands", "it computes"]
)
def test_a_hang_is_told_once_with_its_line_and_a_long_step_is_not(cpu_pct: float, told: list[str]) -> None:
    asked = AlertDesk(
        AlertsSection(to=["bell"]), "quickstart", clock=Clock(), from_start=True, wall_clock=lambda: 181.0
    )
    messages = asked.look(hanging(cpu_pct), "stalled", False)
    assert kinds(messages) == told
    assert ("train.py:9" in messages[-1].text) == (told[-1] == "hung")
    assert asked.look(hanging(cpu_pct), "stalled", False) == []
