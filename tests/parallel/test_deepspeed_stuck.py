"""Under DeepSpeed a rank that hangs or is stopped is named in time too, though its engine exchanges in a group of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

from runner.rank_record import read_ranks
from tests.parallel.test_stuck import FOR_EVER, assert_named, run_with, wait_for_step
from tests.parallel.together import finish, start

pytestmark = [
    pytest.mark.train,
    pytest.mark.long,
    pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="deepspeed is not installed"),
]

ZERO = 'parallel.strategy="deepspeed"'


@pytest.mark.parametrize("stage", [2, 3])
def test_a_rank_that_hangs_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: int
) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_with(tmp_path, FOR_EVER, 16, ZERO, f"parallel.zero_stage={stage}")
    code, said = finish(start(run, 2), 150)
    assert_named(run, code, said, "which did not come", "trouble_loss.py:11 in loss")


def test_a_stopped_rank_is_named_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_with(tmp_path, "pass", 0, ZERO)
    process = start(run, 2)
    wait_for_step(run, 8, lambda: process.poll() is not None)
    (victim,) = [one for one in read_ranks(run.path) if one.rank == 1]
    os.kill(victim.pid, signal.SIGSTOP)
    code, said = finish(process, 120)
    assert_named(run, code, said, "which was stopped")
    code, said = finish(start(run, 2, "--resume"), 150)
    assert code == 0, said
