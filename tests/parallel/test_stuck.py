"""Through torchrun: a rank that is stopped, hangs, or is stuck in the kernel. The others leave in time, it is named with where it
stands, the stacks of all are kept, and the run goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from runner.rank_record import read_ranks, stack_file
from runner.rundir import RunDir
from tests.parallel.test_ranks_trouble import LOSS, NAN
from tests.parallel.together import finish, overrides, start, steps
from tests.runner.tiny import events, make_run, outcome

pytestmark = [pytest.mark.train, pytest.mark.long]

TIMEOUT_S = 10
FOR_EVER = "import time; time.sleep(100000)"
# The parent of a vfork sleeps where no signal but SIGKILL reaches it, until its child execs or exits; the child ends with it.
IN_THE_KERNEL = """\
import ctypes
        libc = ctypes.PyDLL(None)
        libc.vfork() or (libc.close(1), libc.close(2), libc.prctl(1, 9, 0, 0, 0), libc.sleep(300), libc._exit(0))"""


def run_with(folder: Path, trouble: str, at: int = 16, *more: str) -> RunDir:
    """Return a run whose second rank meets ``trouble`` in its ``at``-th forward pass."""
    (folder / "trouble_loss.py").write_text(LOSS.format(trouble=trouble, at=at))
    settings = overrides(
        "train.lr=3e-4", 'train.loss="trouble_loss:loss"', f"parallel.timeout_s={TIMEOUT_S}", *more
    )
    return make_run(folder, settings)


def wait_for_step(run: RunDir, step: int, process_ended: object) -> None:
    end = time.monotonic() + 90
    while len(steps(run, 1)) < step and time.monotonic() < end and not process_ended():  # type: ignore[operator]
        time.sleep(0.05)


def assert_named(run: RunDir, code: int, said: str, *words: str) -> None:
    """The run failed, rank 1 is named with how and where it stood, both ranks' stacks are there, and nobody is left."""
    assert code == 1, said
    error = str(outcome(run)["error"])
    assert error.startswith("all waited for rank 1 (process "), error
    assert all(word in error for word in words), error
    assert (
        "trouble_loss.py" in stack_file(run.path, 1).read_text()
        or "trainer.py" in stack_file(run.path, 1).read_text()
    )
    assert "trainer.py" in stack_file(run.path, 0).read_text()
    assert not any(Path(f"/proc/{one.pid}").exists() for one in read_ranks(run.path))
    own = next(event.data for event in events(run, "run-finished"))
    assert own["exchange"] in ("timed-out", "closed"), "what rank 0 said itself"


def test_a_stopped_rank_is_named_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_with(tmp_path, "pass", at=0)
    process = start(run, 2)
    wait_for_step(run, 8, lambda: process.poll() is not None)
    (victim,) = [one for one in read_ranks(run.path) if one.rank == 1]
    os.kill(victim.pid, signal.SIGSTOP)
    code, said = finish(process, 90)
    assert_named(run, code, said, "which was stopped")
    code, said = finish(start(run, 2, "--resume"), 110)
    assert code == 0, said


def test_a_rank_that_hangs_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_with(tmp_path, FOR_EVER)
    code, said = finish(start(run, 2), 110)
    assert_named(run, code, said, "which did not come", "trouble_loss.py:11 in loss")


def test_a_rank_stuck_in_the_kernel_is_told_from_one_that_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_with(tmp_path, IN_THE_KERNEL)
    code, said = finish(start(run, 2), 110)
    assert code == 1, said
    assert "which is stuck in the kernel" in str(outcome(run)["error"])
    assert "kernel: state D" in stack_file(run.path, 1).read_text()


def test_what_all_ranks_agreed_on_is_the_runs_own_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that is not finite ends all ranks alike: no rank is to blame, and the exit code is that of any run."""
    monkeypatch.chdir(tmp_path)
    run = run_with(tmp_path, NAN, at=5)
    code, said = finish(start(run, 2), 90)
    assert code == 4, said
    assert [event.data["outcome"] for event in events(run, "run-finished")] == ["non-finite"]
