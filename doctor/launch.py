"""Makes a run directory and starts the trainer in it, in a session of its own, with the sampler beside it.

The trainer belongs to the examined interpreter; the sampler to ours. Neither dies with the terminal that started it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import doctor
import runner
from doctor.detached import start_detached
from doctor.machine import encode_snapshot
from doctor.model import Snapshot
from doctor.rendezvous import without_rendezvous
from doctor.slurm import SlurmTask
from doctor.start_errors import LaunchError as LaunchError
from doctor.together import Together, keep
from doctor.trainer_pid import mark_of, trainer_alive, write_mark
from runner.alert_settings import AlertsSection, write_settings
from runner.plan import Plan, decode_plan, encode_plan
from runner.rundir import RunDir, new_run_name, runs_home
from runner.text import Text, t


@dataclass
class StartedRun:
    """A run under way, in the process that started it."""

    run: RunDir
    process: subprocess.Popen[bytes]
    """The trainer; whoever attaches reaps it here and learns a signal that killed it."""
    sampler: subprocess.Popen[bytes] | None = None
    sampler_why: Text | None = None
    """Why there is no sampler, or nobody who tells of alerts."""


def new_run_dir(name: str, now: datetime | None = None) -> Path:
    """Return a path under :func:`runs_home` that no run has yet."""
    base = runs_home().absolute() / new_run_name(name, now or datetime.now(timezone.utc))
    return next(
        path
        for path in (base, *(base.with_name(f"{base.name}-{n}") for n in range(2, 1000)))
        if not path.exists()
    )


def prepare_run(plan: Plan, snapshot: Snapshot, path: Path, alerts: AlertsSection | None = None) -> RunDir:
    """Make the run directory of a profile's plan, with our runner's code in it. Raises LaunchError."""
    return prepare_directory(encode_plan(plan), snapshot, path, with_code=True, alerts=alerts)


def prepare_directory(
    plan: bytes,
    snapshot: Snapshot,
    path: Path,
    with_code: bool = False,
    alerts: AlertsSection | None = None,
) -> RunDir:
    """Make a run directory: our runner's code where wanted, the snapshot, who is told of what, and last the plan (from
    then on it is a run).

    Raises:
        LaunchError: the directory is taken or cannot be written.
    """
    run = RunDir(path.absolute())
    existed = run.path.exists()
    try:
        run.make()
        if with_code:
            copy_runner(run)
        _write(run.snapshot, encode_snapshot(snapshot))
        if alerts is not None and alerts.is_on:
            write_settings(run, alerts)
        _write(run.plan, plan)
    except FileExistsError:
        raise LaunchError(
            t(
                "{path} already holds a run; give another --run-dir, or go on with it: doctor run --resume {path}",
                path=str(run.path),
            )
        ) from None
    except OSError as error:
        if not existed:
            shutil.rmtree(run.path, ignore_errors=True)
        raise LaunchError(_unwritable(run, error)) from None
    return run


def _unwritable(run: RunDir, error: OSError) -> Text:
    # shutil.Error holds a list of (from, to, words), one a file.
    why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or str(error)
    return t("the run directory {path} cannot be written: {error}. --run-dir DIR puts it elsewhere, DOCTOR_RUNS=DIR all of them",
             path=str(run.path), error=str(why))  # fmt: skip


def copy_runner(run: RunDir) -> None:
    """Copy our ``runner`` package alone to ``RUN/code/runner``. Raises OSError."""
    copy_runner_to(run.code)


def copy_runner_to(folder: Path) -> None:
    """Copy our ``runner`` package alone into ``folder``. Raises OSError."""
    source = Path(runner.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(source, folder / "runner", ignore=ignore, dirs_exist_ok=True)


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def start_run(
    run: RunDir,
    python: str,
    resume: bool = False,
    with_sampler: bool = True,
    approximate: bool = False,
    together: Together | None = None,
    task: SlurmTask | None = None,
) -> StartedRun:
    """Start the trainer of a prepared run, and the sampler beside it.

    ``approximate``: also where it cannot go on to the bit. ``together``: in several processes. ``task``: as the first rank
    of those that SLURM starts.

    Raises:
        LaunchError: another trainer writes there, or the interpreter does not start.
    """
    lock = take_lock(run)
    try:
        process = _start_trainer(run, python, _flags(resume, approximate, together), lock, task)
        keep(run, together)
    finally:
        if lock is not None:
            os.close(lock)  # the trainer holds its own copy; ours would outlive it
    if task is not None:
        (run.path / f".started-{task.step}").touch()  # the other tasks wait for it
    mark = mark_of(process.pid)
    if mark is not None:
        write_mark(run.trainer_pid, mark)
    started = StartedRun(run, process)
    if with_sampler:
        _start_sampler(started)
    started.sampler_why = start_telling(run) or started.sampler_why
    return started


def start_telling(run: RunDir) -> Text | None:
    """Start what tells of the run's alerts, where it has been asked for; return why it could not be."""
    from doctor.alert_follow import start_alerts

    try:
        start_alerts(run)
    except OSError as error:
        return t("alerts will not be told: {error}", error=error.strerror or str(error))
    return None


def take_lock(run: RunDir) -> int | None:
    """Return an open file that holds the run's lock; None where the file system knows no locks.

    Raises:
        LaunchError: a trainer runs, or somebody else is just starting one.
    """
    if trainer_alive(run) or _is_locked(run.path / "trainer.lock"):
        raise LaunchError(_taken(run))
    try:
        fd = os.open(run.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LaunchError(_unwritable(run, error)) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise LaunchError(_taken(run)) from None
    except OSError:  # ENOLCK, EOPNOTSUPP: a network disk without locks; the pid has been asked already
        os.close(fd)
        return None
    return fd


def _is_locked(path: Path) -> bool:
    """Return whether a trainer holds its own lock: one that was started by hand, or in another container."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def _taken(run: RunDir) -> Text:
    return t("a trainer is already at work in {path}; see it with: doctor watch {path}", path=str(run.path))


def _flags(resume: bool, approximate: bool, together: Together | None) -> list[str]:
    return [
        *(["--resume"] if resume else []),
        *(["--approximate"] if approximate else []),
        *(together.flags if together else []),
    ]


def _start_trainer(
    run: RunDir, python: str, flags: list[str], lock: int | None, task: SlurmTask | None = None
) -> subprocess.Popen[bytes]:
    plan = decode_plan(run.plan.read_bytes())
    argv = [python, "-u", str(run.code / "runner" / "__main__.py"), str(run.path), *flags]
    environment = trainer_environment(plan, os.environ)
    environment = task.over(environment) if task else environment
    try:
        return start_detached(argv, run.trainer_log, environment=environment, lock=lock)
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(
            t("the interpreter {python} could not be started: {error}", python=python, error=why)
        ) from None


def trainer_environment(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the session's variables with the plan's laid over them, without those of another job's processes; nothing of our
    own environment is added."""
    return {**without_rendezvous(environ), **plan.environment}


def _start_sampler(started: StartedRun) -> None:
    try:
        several = ("--ranks",) if started.run.start.exists() else ()
        started.sampler = start_sampler(started.run, started.process.pid, *several)
    except OSError as error:
        started.sampler_why = sampler_trouble(error)


def sampler_trouble(error: OSError) -> Text:
    return t("the sampler could not be started: {error}", error=error.strerror or str(error))


def start_sampler(run: RunDir, pid: int, *options: str) -> subprocess.Popen[bytes]:
    """Start ``python -m doctor.sampler`` in ``RUN/stacks``: a folder of ours, so nobody's ``doctor.py`` is found first.

    Raises OSError.
    """
    argv = [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(pid), *options]
    run.stacks.mkdir(exist_ok=True)
    return start_detached(
        argv, run.path / "sampler.log", environment=sampler_environment(os.environ), folder=run.stacks
    )


def sampler_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables under which our interpreter finds this very ``doctor``, installed or in a checkout."""
    home = Path(doctor.__file__).parent.parent
    if home.name in ("site-packages", "dist-packages"):
        return dict(environ)
    return {
        **environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(home), environ.get("PYTHONPATH", "")])),
    }
