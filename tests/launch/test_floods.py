"""A command that writes gigabytes costs its supervisor little, and ends when it ends; what 137 and a question can mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.ended import Ended, notes_of
from doctor.log_reader import A_LOOK_BYTES, BEHIND_BYTES, LogReader
from doctor.supervisor import Supervisor
from runner.command_plan import CommandPlan
from runner.events import RunEvent, read_events
from runner.rundir import RunDir


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    run = RunDir(tmp_path / "run")
    run.make()
    run.trainer_log.touch()
    plan = CommandPlan(
        name="flood",
        made_at="2026-11-30T00:00:00Z",
        argv=("python", "train.py"),
        cwd=str(tmp_path),
        environment={},
        decisions=(),
    )
    return Supervisor(run, plan, {}, with_sampler=False)


def told(supervisor: Supervisor, kind: str) -> list[RunEvent]:
    return [event for event, _ in read_events(supervisor.words.writer.path) if event.kind == kind]


def test_of_a_flood_the_end_is_read_and_the_rest_is_said_to_be_passed_over(supervisor: Supervisor) -> None:
    reader = LogReader(supervisor.run, supervisor.words.write, supervisor.words.note)
    with open(supervisor.run.trainer_log, "wb") as log:
        log.write(b"step 1/99 loss 7.5\n")
        for _ in range(30):
            log.write((b"x" * 99 + b"\n") * 10_000)
        log.write(b"step 98/99 loss 0.25\n")
    looks = 0
    while reader.read():
        looks += 1
    assert looks <= BEHIND_BYTES // A_LOOK_BYTES + 1
    assert [event.step for event in told(supervisor, "step")] == [98]
    (note,) = told(supervisor, "note")
    assert "faster than its output is read" in note.data["text"]["msgid"]


def test_a_line_cut_by_passing_over_is_not_read_as_another(supervisor: Supervisor) -> None:
    """Its first half is gone: what is left of `step 123 loss 4` must not become step 3."""
    reader = LogReader(supervisor.run, supervisor.words.write, supervisor.words.note)
    line = b"step 1234567 loss 0.5\n"
    with open(supervisor.run.trainer_log, "wb") as log:
        log.write(line * (5 * BEHIND_BYTES // len(line)))
    while reader.read():
        continue
    assert {event.step for event in told(supervisor, "step")} == {1234567}


def test_an_ordinary_log_is_read_whole(supervisor: Supervisor) -> None:
    reader = LogReader(supervisor.run, supervisor.words.write, supervisor.words.note)
    with open(supervisor.run.trainer_log, "wb") as log:
        log.write(b"".join(b"step %d/900 loss 0.5\n" % number for number in range(1, 901)))
    reader.end()
    assert [event.step for event in told(supervisor, "step")][-1] == 900 and told(supervisor, "note") == []


@pytest.mark.parametrize(
    ("code", "words"), [(137, "unless it chose that status itself"), (-9, "a person, a scheduler")]
)
def test_a_status_a_program_may_choose_is_not_called_a_signal(code: int, words: str) -> None:
    (note,) = notes_of(Ended(code, 3, 3), "bye\n", 0, None)
    assert words in note.text.msgid
    assert ("unless" in note.text.msgid) == (code == 137)


def test_a_question_that_nobody_can_answer_is_explained() -> None:
    log = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nEOFError: EOF when reading a line\n'
    _, advice = notes_of(Ended(1), log, 0, None)
    assert "no keyboard" in advice.text.msgid
