"""Through torchrun, as a person starts it: a process that is killed is named, the others leave, and the run goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from runner.rank_record import read_ranks
from tests.parallel.together import finish, furthest, overrides, start, steps
from tests.runner.tiny import make_run, outcome, train

pytestmark = pytest.mark.train


def test_a_killed_process_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    settings = overrides("train.lr=3e-4", "train.epochs=20", "train.evaluate_every=1000")
    run = make_run(tmp_path, settings)
    process = start(run, 2)
    end = time.monotonic() + 90
    while len(steps(run, 1)) < 12 and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)
    (victim,) = [one for one in read_ranks(run.path) if one.rank == 1]
    os.kill(victim.pid, signal.SIGKILL)
    code, said = finish(process, 60)
    assert code == 1, said
    assert outcome(run)["outcome"] == "failed"
    assert "rank 1" in str(outcome(run)["error"]) and str(victim.pid) in str(outcome(run)["error"])
    assert "trainer.py" in (run.path / "stacks" / "rank-0.txt").read_text()
    assert not any(Path(f"/proc/{one.pid}").exists() for one in read_ranks(run.path))
    code, said = finish(start(run, 2, "--resume"), 110)
    assert code == 0, said
    alone = make_run(tmp_path, settings, "alone")
    assert train(alone) == 0
    assert len(steps(alone)) == 400 and furthest(alone.final, run.final) <= 1e-3
