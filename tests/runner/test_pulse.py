"""The trainer's signs of life: an evaluation tells how far it is, and a step that does not end is written down by itself."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner import pulse
from runner.dumps import where_in
from runner.watchdog import dump_name
from tests.runner.tiny import copy_code, events, make_run, train

pytestmark = pytest.mark.train


def test_a_long_evaluation_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "TELL_EVERY_S", 0.0)
    run = make_run(tmp_path, ["train.steps=4", "train.evaluate_every=2"])
    assert train(run) == 0
    told = [event.data for event in events(run, "evaluating")]
    assert {data["total"] for data in told} == {3}  # 40 rows, 16 at a time
    assert [data["done"] for data in told[:3]] == [1, 2, 3]


def test_a_short_one_says_nothing_and_a_run_that_ends_leaves_no_dump(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.steps=4", "train.evaluate_every=2"])
    assert train(run) == 0
    assert events(run, "evaluating") == []
    assert not (run.stacks / dump_name(0)).exists()


STUCK = """
import sys, threading
sys.path.insert(0, {code!r})
import runner.watchdog as watchdog
watchdog.FIRST_S = watchdog.LEAST_S = {limit}
import runner.trainer as trainer
say_step, lock = trainer.say_step, threading.Lock()
def held(bench, *rest):
    say_step(bench, *rest)
    if bench.state.windows_done == 3:
        lock.acquire()
        lock.acquire()
trainer.say_step = held
from runner.session import run_session
from runner.signals import StopRequest
run_session({run!r}, False, StopRequest())
"""


def test_a_step_that_does_not_end_is_written_down_by_the_trainer_itself(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["train.steps=10"])
    code = copy_code(run).parent.parent
    script = tmp_path / "stuck.py"
    script.write_text(STUCK.format(code=str(code), run=str(run.path), limit=6.0))
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    dump = run.stacks / dump_name(0)
    end = time.monotonic() + 120
    try:
        while (
            not (dump.exists() and dump.stat().st_size) and process.poll() is None and time.monotonic() < end
        ):
            time.sleep(0.2)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    assert [event.step for event in events(run, "step")] == [1, 2, 3]
    text = dump.read_text()
    assert "in held" in where_in(text)
    assert "one_window" in text
