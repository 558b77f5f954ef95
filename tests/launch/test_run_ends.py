"""A row of ``doctor runs`` says the same of a long run as reading all of it would."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor import run_ends
from doctor.run_ends import first_and_last
from doctor.watching import summarise
from runner.events import EventWriter, read_events
from runner.rundir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path)
    run.make()
    run.plan.write_text("{}")
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0", clock=iter(range(10**6)).__next__)
    writer.write("run-started", steps_total=3000, device="cpu")
    for step in range(1, 3001):
        writer.write("step", step, loss=1 / step, samples=8, seconds=1.0)
        if step in (500, 1000):
            writer.write("evaluation", step, accuracy=step / 2000, samples=10)
    writer.close()
    return run


def test_a_long_file_gives_the_same_row_as_a_short_one(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summarise(run)
    monkeypatch.setattr(run_ends, "WHOLE_BYTES", 0)
    monkeypatch.setattr(run_ends, "END_BYTES", 4000)
    monkeypatch.setattr(run_ends, "BLOCK_BYTES", 777)  # lines lie across blocks
    path = run.events / "trainer-0.jsonl"
    assert len(list(first_and_last(path))) < 200 < len(list(read_events(path)))
    row = summarise(run)
    fields = ("status", "step", "steps_total", "started_at", "loss", "metrics")
    assert {name: getattr(row, name) for name in fields} == {name: getattr(whole, name) for name in fields}
    assert row.metrics == {"accuracy": 0.5}


def test_a_torn_last_line_is_waited_for(run: RunDir) -> None:
    path = run.events / "trainer-0.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"seq": 9999, "t": 1, "source"')
    assert summarise(run).step == 3000


def test_no_events_yet_is_no_trouble(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "new")
    run.make()
    assert (summarise(run).step, summarise(run).started_at) == (0, None)
    assert list(first_and_last(tmp_path / "none.jsonl")) == []
