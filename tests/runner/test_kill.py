"""Killed at any instant, a run continues to the same weights, bit for bit, as the run that was never
killed."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from runner.checkpoint import checkpoint_folders
from runner.durable import what_is_wrong
from runner.rundir import RunDir
from runner.session import take_lock
from tests.runner.killing import start, wait_for_step
from tests.runner.tiny import events, final_hash, last_losses, make_run, outcome, train

pytestmark = pytest.mark.train


LONGER = ["train.epochs=3", "train.checkpoint_every=4", "train.evaluate_every=7"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("whole"), LONGER, "whole")
    assert train(run) == 0
    return run


def same_rows(whole: RunDir) -> list[str]:
    return [*LONGER, f"data.train={whole.path.parent / 'rows.csv'}"]


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_instants_again_and_again(
    server: Any, whole: RunDir, tmp_path: Path, seed: int
) -> None:
    run = make_run(tmp_path, same_rows(whole), "whole")
    draw = random.Random(seed)
    for attempt in range(3):
        process = start(server, run, resume=attempt > 0)
        process.join(draw.uniform(0.05, 1.2))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()
    last = start(server, run, resume=True)
    last.join()
    assert last.exitcode == 0
    assert final_hash(run) == final_hash(whole)
    assert last_losses(run) == last_losses(whole)


@pytest.mark.parametrize("call", [1, 3, 6, 10, 15, 21, 28, 40])
def test_killed_between_the_file_operations_of_a_save(
    server: Any, whole: RunDir, tmp_path: Path, call: int
) -> None:
    run = make_run(tmp_path, same_rows(whole), "whole")
    process = start(server, run, kill_at_call=call)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert all(not what_is_wrong(folder) for _, folder in checkpoint_folders(run)), (
        "what has the name is whole"
    )
    last = start(server, run, resume=True)
    last.join()
    assert last.exitcode == 0
    assert final_hash(run) == final_hash(whole)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name
)
def test_a_stop_signal_saves_and_leaves_143(
    server: Any, whole: RunDir, tmp_path: Path, number: signal.Signals
) -> None:
    run = make_run(tmp_path, same_rows(whole), "whole")
    process = start(server, run)
    wait_for_step(run, 6)
    os.kill(process.pid, number)
    process.join()
    assert process.exitcode == 143
    assert outcome(run)["outcome"] == "stopped"
    assert events(run, "checkpoint")[-1].data["reason"] == "signal"
    last = start(server, run, resume=True)
    last.join()
    assert last.exitcode == 0
    assert final_hash(run) == final_hash(whole)


def test_the_workers_of_a_killed_trainer_do_not_hold_its_run(
    server: Any, whole: RunDir, tmp_path: Path
) -> None:
    """They see only seconds later that it is gone; whoever continues at once must not be refused."""
    run = make_run(tmp_path, [*same_rows(whole), "train.workers=2"], "whole")
    process = start(server, run)
    wait_for_step(run, 6)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    lock = take_lock(run)
    assert any(Path(f"/proc/{pid}").exists() for pid in children), "they are still there"
    assert lock is not None
    os.close(lock)


def test_a_signal_to_all_processes_of_the_run_is_the_trainers_alone(
    server: Any, whole: RunDir, tmp_path: Path
) -> None:
    """A scheduler signals the whole group: a loader's worker that died of it would take the window with it."""
    run = make_run(tmp_path, [*same_rows(whole), "train.workers=2"], "whole")
    process = start(server, run)
    wait_for_step(run, 6)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    for pid in [*map(int, children), process.pid]:
        os.kill(pid, signal.SIGTERM)
    process.join()
    assert process.exitcode == 143
    last = start(server, run, resume=True)
    last.join()
    assert last.exitcode == 0
    # the number of workers is another plan, and never another result
    assert final_hash(run) == final_hash(whole)


def test_a_second_interrupt_leaves_at_once_and_harms_nothing(
    server: Any, whole: RunDir, tmp_path: Path
) -> None:
    run = make_run(tmp_path, [*same_rows(whole), "train.workers=2"], "whole")
    process = start(server, run)
    wait_for_step(run, 6)
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGINT)
    process.join()
    assert process.exitcode in (130, 143)
    assert all(not what_is_wrong(folder) for _, folder in checkpoint_folders(run))


def test_a_signal_before_the_first_step_ends_the_run_without_a_checkpoint(
    server: Any, tmp_path: Path
) -> None:
    from runner.signals import StopRequest

    class AlreadyAsked(StopRequest):
        def __bool__(self) -> bool:
            return True

    run = make_run(tmp_path)
    assert train(run, stop=AlreadyAsked()) == 143
    assert outcome(run)["outcome"] == "stopped"
    assert train(run, resume=True) == 0
