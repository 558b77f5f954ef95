"""The live source: what service answers, renamed for the screens; a start is refused with every reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from doctor import service
from doctor.machine import encode_snapshot
from doctor.model import Packages, Reading, Snapshot, ok
from doctor.tui.live import LiveSource
from doctor.tui.source import Refused
from doctor.tui.trouble import sentence
from runner.plan import PlanError
from runner.text import t
from tests.tui.recorded import HEALTHY_FACTS, RunBuilder, whole_run


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "machine.json"
    path.write_bytes(encode_snapshot(Snapshot(facts=HEALTHY_FACTS, label="rented")))
    return path


def test_a_recorded_machine_is_judged_in_place_of_this_one(recorded: Path) -> None:
    examination = LiveSource(recorded).examine()
    assert examination.snapshot.label == "rented"
    assert examination.recorded == str(recorded)
    assert {item.section for item in examination.report.unanswered} <= {"driver"}


def test_runs_are_listed_and_watched_by_their_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_RUNS", str(tmp_path))
    whole_run(tmp_path / "done")
    RunBuilder(tmp_path / "new")
    rows = {row.name: row for row in LiveSource().runs()}
    assert rows["done"].status == "completed"
    assert rows["done"].metrics == {"accuracy": 0.96}
    assert rows["new"].status == "starting"
    watcher = LiveSource().watch(rows["done"].key)
    assert watcher.poll().step == 100
    assert watcher.is_over()


def test_stopping_a_run_that_is_over_is_refused(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "done").run
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    from doctor.trainer_pid import mark_of, write_mark

    mark = mark_of(ended.pid)
    assert mark is not None
    write_mark(run.trainer_pid, mark)
    ended.wait()
    with pytest.raises(Refused, match="does not run any more"):
        LiveSource().stop(str(run.path))


def test_every_shipped_profile_becomes_a_plan_with_reasons(recorded: Path) -> None:
    source = LiveSource(recorded)
    profiles = source.profiles()
    assert profiles
    for row in profiles:
        plan = source.plan(row.name)
        assert plan.decisions
        assert all(str(decision.why) for decision in plan.decisions)


def test_a_start_that_the_machine_forbids_begins_nothing(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCTOR_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(service, "examine", lambda python=None, sections=None: service.load(recorded))
    bare = msgspec.structs.replace(HEALTHY_FACTS, torch=Reading(status="absent"), packages=ok(Packages()))
    recorded.write_bytes(encode_snapshot(Snapshot(facts=bare)))
    source = LiveSource()
    with pytest.raises(Refused) as refused:
        source.start(source.profiles()[0].name)
    assert refused.value.problems
    assert not (tmp_path / "runs").exists()


def test_a_profile_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(Exception, match="no-such") as raised:
        LiveSource().plan("no-such")
    assert "no-such" in sentence(raised.value)
    assert "\n" not in sentence(raised.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            FileNotFoundError(2, "no run there (no plan.json)", "a\x1bb"),
            "a\\x1bb: no run there (no plan.json)",
        ),
        (OSError(5, "Input/output error", "events"), "OSError: [Errno 5] Input/output error: 'events'"),
        (Refused(("one", "two")), "one\ntwo"),
        (PlanError(t("{path} is of a newer schema", path="plan.json")), "plan.json is of a newer schema"),
    ],
    ids=["missing-with-escape", "disk", "refused", "plan"],
)
def test_errors_become_sentences(error: Exception, words: str) -> None:
    assert sentence(error) == words
