"""A later task of srun: it becomes the trainer of its rank, and leaves at once where the first task starts no run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.slurm import SlurmTask, slurm_task
from doctor.slurm_join import join, refused_mark, tell_refused
from doctor.start_errors import LaunchError
from tests.parallel.test_slurm import STEP
from tests.runner.tiny import PROFILE, write_rows


def later_task() -> SlurmTask:
    task = slurm_task(STEP)
    assert task is not None
    return task


def test_a_task_whose_first_starts_nothing_leaves_at_once(tmp_path: Path) -> None:
    tell_refused(later_task(), tmp_path / "runs" / "run")
    with pytest.raises(LaunchError, match="task 0 starts no run"):
        join(later_task(), tmp_path / "runs" / "run", {}, [], clock=lambda: 0.0)


def test_what_an_earlier_step_left_is_no_word_of_this_one(tmp_path: Path) -> None:
    again = slurm_task({**STEP, "SLURM_RESTART_COUNT": "1"})
    assert again is not None
    tell_refused(later_task(), tmp_path / "run")
    assert not refused_mark(again, tmp_path / "run").exists()
    clock = iter([0.0, 1000.0])
    with pytest.raises(LaunchError, match="waited 300 s"):
        join(again, tmp_path / "run", {}, [], clock=lambda: next(clock))


def step(rank: str) -> dict[str, str]:
    variables = {
        "SLURM_STEP_NUM_TASKS": "5",
        "SLURM_PROCID": rank,
        "DOCTOR_LANG": "en",
        "MASTER_ADDR": "127.0.0.1",
    }
    return {**os.environ, **STEP, **variables}


def started(folder: Path, rank: str, *words: str) -> subprocess.Popen[str]:
    code = "import sys; from doctor.commands import main; sys.exit(main())"
    home = str(Path(__file__).parent.parent.parent)
    argv = [sys.executable, "-c", code, "run", "tiny.toml", "--python", sys.executable, *words]
    return subprocess.Popen(argv, cwd=folder, env={**step(rank), "PYTHONPATH": home}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "codes"),
    [(("--set", "train.batch_size=4"), (1, 1)), (("--dry-run",), (0, 0))],
    ids=["what five processes cannot share", "a plan that is only shown"],
)
def test_all_tasks_leave_where_no_run_is_started(
    tmp_path: Path, words: tuple[str, ...], codes: tuple[int, int]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    write_rows(tmp_path / "rows.csv", 40)
    (tmp_path / "tiny.toml").write_text(PROFILE)
    both = [started(tmp_path, rank, *words) for rank in ("0", "3")]
    said = [one.communicate(timeout=240) for one in both]
    assert tuple(one.returncode for one in both) == codes, said
    assert said[1][0] == "", "the first task alone shows the plan"
