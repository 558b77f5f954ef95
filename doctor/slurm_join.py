"""A task of ``srun`` that is not the first: it waits for the first one's run directory and becomes one rank there."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from doctor.launch import trainer_environment
from doctor.running import recorded_python
from doctor.slurm import SlurmTask
from doctor.start_errors import LaunchError
from runner.plan import decode_plan
from runner.rundir import RunDir, runs_home
from runner.text import t

WAIT_S = 300.0


def common_dir(task: SlurmTask, name: str) -> Path:
    """Return the directory that all tasks of a step mean."""
    return runs_home().absolute() / f"{name}-slurm-{task.step}"


def join(
    task: SlurmTask,
    path: Path,
    environ: dict[str, str],
    flags: list[str],
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Wait until task 0 has started the run in ``path``, be one of its ranks, and return that rank's exit code.

    Raises:
        LaunchError: it does not come; the directory is not on a disk that all nodes share, or task 0 failed.
    """
    run, mark = RunDir(path.absolute()), path / f".started-{task.step}"
    end = clock() + WAIT_S
    while not mark.exists():
        if clock() > end:
            raise LaunchError(
                t("task {rank} waited {seconds} s for {path}: task 0 did not start there, or the disk is not shared by all nodes "
                  "(name one that is with --run-dir)", rank=task.rank, seconds=round(WAIT_S), path=str(path))
            )  # fmt: skip
        time.sleep(0.2)
    environment = trainer_environment(decode_plan(run.plan.read_bytes()), environ) | task.variables
    argv = [recorded_python(run), "-u", str(run.code / "runner" / "__main__.py"), str(run.path), *flags]
    return subprocess.call(argv, env=environment, stdout=sys.stderr)
