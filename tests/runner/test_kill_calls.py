"""SIGKILL between the system calls of a save and of the end of a run, at every so many of them, by strace.

Every call of a save: ``python -m benchmarks.runner calls``.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from runner.checkpoint import checkpoint_folders
from runner.rundir import RunDir
from tests.runner.killing import start
from tests.runner.killing_calls import can_trace, finish_traced, save_killed_at
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import final_hash, make_run, train

pytestmark = [
    pytest.mark.train,
    pytest.mark.skipif(not can_trace(), reason="strace is not here, or may not attach"),
]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run of 40 windows, stopped, which keeps one checkpoint."""
    run = make_run(tmp_path_factory.mktemp("stopped"), ["train.keep_last=1"], "stopped")
    assert train(run, stop=StopAfter(18)) == 143
    assert len(checkpoint_folders(run)) == 1
    return run


@pytest.mark.parametrize("call", range(2, 50, 4))
def test_killed_at_a_call_of_a_save_the_older_or_the_newer_is_whole(
    server: Any, stopped: RunDir, tmp_path: Path, call: int
) -> None:
    run = RunDir(shutil.copytree(stopped.path, tmp_path / "run"))
    assert save_killed_at(server, run, call) == -signal.SIGKILL


@pytest.mark.parametrize("call", [3, 40, 120, 300, 500, 700])
def test_killed_at_a_call_of_the_end_the_run_ends_the_same(
    server: Any, stopped: RunDir, tmp_path: Path, call: int
) -> None:
    whole, run = (RunDir(shutil.copytree(stopped.path, tmp_path / name)) for name in ("whole", "run"))
    assert train(whole, resume=True) == 0
    assert finish_traced(server, run, call) == -signal.SIGKILL
    last = start(server, run, resume=True)
    last.join()
    assert last.exitcode == 0 and final_hash(run) == final_hash(whole)
