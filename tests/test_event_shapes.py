"""Events of a damaged or hostile run directory: what is not of its kind is left out, the rest is shown all the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doctor.commands import main
from doctor.event_shapes import sound_events
from doctor.watching import list_runs
from runner.events import KINDS, RunEvent
from runner.state import fold
from tests.commands_run import doctor
from tests.tui.recorded import START, RunBuilder

KEYS = """loss lr samples seconds split non_finite steps_total accuracy path bytes level text file outcome metrics
exit_code error gpus frames state at command pid model cpu_pct rss_bytes unread"""


@pytest.mark.parametrize(
    ("kind", "data", "kept"),
    [
        pytest.param("step", {"loss": "nan", "lr": 1, "samples": 32}, {"loss": "nan", "lr": 1, "samples": 32}, id="a sound step, as it is"),
        pytest.param("step", {"loss": 0.5, "later": [1]}, {"loss": 0.5, "later": [1]}, id="a key nobody knows is kept"),
        pytest.param("step", {"loss": [1], "split": [1], "lr": 0.1}, {"lr": 0.1}, id="lists for numbers"),
        pytest.param("step", {"samples": "inf", "loss": "oops", "seconds": True}, {}, id="words for numbers"),
        pytest.param("evaluation", {"accuracy": {"a": 1}, "loss": 1.0}, {"loss": 1.0}, id="a metric that is none"),
        pytest.param("run-started", {"steps_total": -4, "model": {}, "resumed_from_step": "x"}, {}, id="a start"),
        pytest.param("note", {"text": {"msgid": 4}, "level": "warn"}, {"level": "warn"}, id="a note without words"),
        pytest.param("sample-gpu", {"gpus": [1]}, {}, id="cards that are none"),
        pytest.param("sample-stacks", {"frames": [{"function": 5}], "samples": 3}, {"samples": 3}, id="frames"),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_left_out(kind: str, data: dict[str, Any], kept: dict[str, Any]) -> None:
    event = RunEvent(seq=0, t=START, source="trainer-0", kind=kind, step=3, data=data)
    (sound,) = sound_events([event])
    assert sound.data == kept
    fold([sound])


@pytest.mark.parametrize("t", [-5.0, 1e300], ids=["before time", "after it"])
def test_an_event_outside_the_calendar_is_left_out(t: float) -> None:
    assert list(sound_events([RunEvent(seq=0, t=t, source="x", kind="step")])) == []


def test_a_step_below_zero_is_no_step() -> None:
    (sound,) = sound_events([RunEvent(seq=0, t=START, source="x", kind="step", step=-7)])
    assert sound.step is None


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: a sound one, and one whose file someone else has written into."""
    RunBuilder(tmp_path / "sound").start().steps(3)
    RunBuilder(tmp_path / "damaged").start().steps(3)
    bad: list[Any] = [{"a": 1}, [1], "x\x1b[2J", -1e300, None, 10**18]
    with open(tmp_path / "damaged/events/trainer-0.jsonl", "ab") as file:
        file.write(b"\xff\xfe\x00\n[]\nnull\n{}\n")
        for kind in KINDS:
            for number, value in enumerate(bad):
                data = dict.fromkeys(KEYS.split(), value)
                event = {
                    "seq": number,
                    "t": START + 10,
                    "source": "trainer-0",
                    "kind": kind,
                    "step": 4,
                    "data": data,
                }
                file.write(json.dumps(event).encode() + b"\n")
        file.write(b'{"seq": 99, "t": 17900')
    return tmp_path


@pytest.mark.parametrize(
    "verb", ["watch --once", "report", "report --json", "report --html", "report --markdown"]
)
def test_a_run_that_someone_wrote_into_is_still_shown(runs: Path, verb: str) -> None:
    name, *options = verb.split()
    done = doctor(name, "damaged", *options, environment={"DOCTOR_RUNS": str(runs)})
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout


def test_one_damaged_run_does_not_hide_the_others(runs: Path) -> None:
    done = doctor("runs", environment={"DOCTOR_RUNS": str(runs)})
    assert done.returncode == 0, done.stderr
    assert "sound" in done.stdout
    assert "damaged" in done.stdout


@pytest.fixture
def forbidden(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose folder another user keeps to himself (root reads everything, so the refusal is acted)."""
    real = Path.stat

    def stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if runs / "damaged" in self.parents:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", stat)
    return runs


def test_a_run_that_may_not_be_looked_into_is_listed_as_such(forbidden: Path) -> None:
    rows = {row.name: row.status for row in list_runs(forbidden)}
    assert rows["damaged"] == "unreadable"
    assert rows["sound"] != "unreadable"


@pytest.mark.parametrize("verb", ["watch", "report"])
def test_a_run_that_may_not_be_looked_into_is_one_line(
    forbidden: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--lang", "en", verb, str(forbidden / "damaged"), "--json"]) == 1
    said = capsys.readouterr().err
    assert "damaged cannot be read: Permission denied" in said


def test_a_folder_of_runs_that_may_not_be_read_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert [row.status for row in list_runs(tmp_path)] == ["unreadable"]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("note", {"text": "长" * 1_000_000}),
        ("note", {"text": {"msgid": "{a}", "params": {"a": "x" * 1_000_000}}}),
        ("run-finished", {"outcome": "failed", "error": "E" * 1_000_000}),
        ("xid", {"number": 1, "line": "x" * 1_000_000}),
    ],
    ids=["note", "filled-in", "error", "xid"],
)
def test_words_longer_than_anyone_reads_are_cut_and_the_rest_is_kept(kind: str, data: dict[str, Any]) -> None:
    (event,) = sound_events([RunEvent(seq=0, t=1.0, source="trainer-0", kind=kind, data=data)])
    assert event.data.keys() == data.keys()
    assert len(str(event.data)) < 25_000
    short = {"text": "长" * 1000, "level": "warn"}
    (event,) = sound_events([RunEvent(seq=0, t=1.0, source="trainer-0", kind="note", data=short)])
    assert event.data == short
