"""A task of ``srun`` that is not the first: it waits for the first one's run directory and becomes one rank there; and the
first one's word that there will be none.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

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


def refused_mark(task: SlurmTask, path: Path) -> Path:
    """Return the file beside ``path`` with which task 0 says that it starts no run there."""
    return path.with_name(f".{path.name}-refused-{task.step}")


def tell_refused(task: SlurmTask, path: Path) -> None:
    """Let the other tasks leave at once."""
    with contextlib.suppress(OSError):  # where nothing can be written they wait their time out
        path.parent.mkdir(parents=True, exist_ok=True)
        refused_mark(task, path).touch()


def join(
    task: SlurmTask,
    path: Path,
    environ: dict[str, str],
    flags: list[str],
    clock: Callable[[], float] = time.monotonic,
) -> NoReturn:
    """Wait until task 0 has started the run in ``path``, and become one of its ranks: SLURM's signals then reach the trainer.

    Raises:
        LaunchError: it does not come; the directory is not on a disk that all nodes share, or task 0 failed.
    """
    run, mark = RunDir(path.absolute()), path / f".started-{task.step}"
    end = clock() + WAIT_S
    while not mark.exists():
        if refused_mark(task, path).exists():
            raise LaunchError(t("task 0 starts no run: it has said why"))
        if clock() > end:
            raise LaunchError(
                t("task {rank} waited {seconds} s for {path}: task 0 did not start there, or the disk is not shared by all nodes "
                  "(name one that is with --run-dir)", rank=task.rank, seconds=round(WAIT_S), path=str(path))
            )  # fmt: skip
        time.sleep(0.2)
    environment = task.over(trainer_environment(decode_plan(run.plan.read_bytes()), environ))
    python = recorded_python(run)
    argv = [python, "-u", str(run.code / "runner" / "__main__.py"), str(run.path), *flags]
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        os.execve(python, argv, environment)
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(
            t("the interpreter {python} could not be started: {error}", python=python, error=why)
        ) from None
