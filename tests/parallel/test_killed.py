"""Through torchrun, as a person starts it: a process that is killed is named, the others leave, and the run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.rank_record import read_ranks
from runner.rundir import RunDir
from runner.standing import standing
from tests.parallel.together import finish, furthest, overrides, start, steps
from tests.runner.tiny import make_run, outcome, train

pytestmark = pytest.mark.train


def wait_for_step(run: RunDir, process: subprocess.Popen[str], step: int) -> None:
    end = time.monotonic() + 90
    while len(steps(run, 1)) < step and time.monotonic() < end and process.poll() is None:
        time.sleep(0.05)


@pytest.mark.long
def test_a_killed_process_is_named_and_the_run_goes_on(tmp_path: Path) -> None:
    settings = overrides("train.lr=3e-4", "train.epochs=20", "train.evaluate_every=1000")
    run = make_run(tmp_path, settings)
    process = start(run, 2)
    wait_for_step(run, process, 12)
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


def test_ranks_save_and_leave_where_what_stands_for_them_is_killed(tmp_path: Path) -> None:
    """For the outside it is the trainer: ranks that went on would train unseen, and hold their cards."""
    run = make_run(tmp_path, overrides("train.lr=3e-4", "train.epochs=200", "train.checkpoint_every=100000"))
    process = start(run, 2)
    wait_for_step(run, process, 8)
    ranks = [one.pid for one in read_ranks(run.path)]
    process.kill()
    process.communicate(timeout=60)
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in ranks) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)
    saved = [path for path in run.checkpoints.iterdir() if path.name.startswith("step-")]
    assert len(saved) == 1, "they agreed, and saved where they were"
    process = start(run, 2, "--resume")
    wait_for_step(run, process, len(steps(run, 1)) + 3)
    process.send_signal(signal.SIGTERM)
    code, said = finish(process, 60)
    assert code == 143, said


def torchrun_of(process: subprocess.Popen[str]) -> int:
    (found,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(found)


def every_process_of(run: RunDir, process: subprocess.Popen[str]) -> list[int]:
    return [torchrun_of(process), *(one.pid for one in read_ranks(run.path)), process.pid]


def ask_all_to_stop(run: RunDir, process: subprocess.Popen[str]) -> None:
    for pid in every_process_of(run, process):
        os.kill(pid, signal.SIGTERM)


BLOWS: dict[str, Callable[[RunDir, subprocess.Popen[str]], None]] = {
    "torchrun is killed": lambda run, process: os.kill(torchrun_of(process), signal.SIGKILL),
    "all are asked to stop, as pkill does": ask_all_to_stop,
}  # fmt: skip


@pytest.mark.parametrize(
    "blow", [pytest.param(blow, id=name, marks=[pytest.mark.long] * (name != "torchrun is killed")) for name, blow in BLOWS.items()]
)  # fmt: skip
def test_ranks_save_and_the_run_is_stopped_where(
    tmp_path: Path, blow: Callable[[RunDir, subprocess.Popen[str]], None]
) -> None:
    run = make_run(tmp_path, overrides("train.lr=3e-4", "train.epochs=200", "train.checkpoint_every=100000"))
    process = start(run, 2)
    wait_for_step(run, process, 5)
    blow(run, process)
    code, said = finish(process, 90)
    assert code == 143, said
    assert outcome(run)["outcome"] == "stopped"
    assert not any(standing(one.pid) for one in read_ranks(run.path))
    assert run.checkpoint(int(str(outcome(run)["steps"]))).is_dir()
