"""The layout of a run directory, and the only place that spells its names.

    plan.json start.json snapshot.json code/ events/*.jsonl checkpoints/step-00000100/ final/ report.html trainer.log
    sampler.log trainer.pid sampler.pid lock stacks/

Whoever can read the directory has the whole run, from another SSH session or next year.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


class RunDir:
    """Names inside one run directory. Nothing is read or made here except by :meth:`make`."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def start(self) -> Path:
        """How many processes the run was last started with; not there: one."""
        return self.path / "start.json"

    @property
    def snapshot(self) -> Path:
        return self.path / "snapshot.json"

    @property
    def code(self) -> Path:
        return self.path / "code"

    @property
    def script(self) -> Path:
        """A copy of the script that a supervised command runs."""
        return self.path / "script"

    @property
    def events(self) -> Path:
        return self.path / "events"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def final(self) -> Path:
        return self.path / "final"

    @property
    def data(self) -> Path:
        """The rows as token ids, and what was found in them (``data.json``)."""
        return self.path / "data"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer that made the ids; ``from_pretrained`` opens it."""
        return self.path / "tokenizer"

    @property
    def stacks(self) -> Path:
        return self.path / "stacks"

    @property
    def trainer_log(self) -> Path:
        return self.path / "trainer.log"

    @property
    def trainer_pid(self) -> Path:
        """``PID START_TICKS HOSTNAME BOOT_ID PID_NAMESPACE`` of the trainer.

        The start time (/proc/PID/stat field 22) is against PID reuse; the rest says where the number means
        anything."""
        return self.path / "trainer.pid"

    @property
    def sampler_pid(self) -> Path:
        return self.path / "sampler.pid"

    @property
    def supervisor_pid(self) -> Path:
        """As :attr:`trainer_pid`, of the process that supervises a command; there is none beside our own trainer."""
        return self.path / "supervisor.pid"

    @property
    def cancel_on_finish(self) -> Path:
        """Once it is there, the command of ``--on-finish`` is not run: ``touch`` it from any session."""
        return self.path / "on-finish.cancel"

    @property
    def lock(self) -> Path:
        """Held (flock) by the trainer from before it starts until it ends: a run has one writer."""
        return self.path / "lock"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:08d}"

    def make(self) -> None:
        """Create the directory and its folders.

        Raises:
            FileExistsError: when a plan is already there: a run directory belongs to one run.
        """
        if self.plan.exists():
            raise FileExistsError(17, "a run is already there", str(self.path))
        for folder in (self.path, self.events, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)


def runs_home() -> Path:
    """Return where runs go unless told otherwise: ``DOCTOR_RUNS``, else ``./runs``."""
    return Path(os.environ.get("DOCTOR_RUNS", "runs"))


def new_run_name(profile_name: str, now: datetime) -> str:
    """Return a sortable name for a new run: ``quickstart-20261130-061500``."""
    return f"{profile_name}-{now:%Y%m%d-%H%M%S}"


def is_run(path: Path) -> bool:
    """Return whether a run lies at ``path``; one that may not be entered counts as one (its reader says so)."""
    try:
        return (path / "plan.json").is_file()
    except PermissionError:
        return True


def find_run(name: str) -> RunDir:
    """Return the run that ``name`` means: a directory, a name under :func:`runs_home`, or ``last``.

    Raises:
        FileNotFoundError: when there is no such run; the message says where was looked.
    """
    home = runs_home()
    if name == "last":
        found = sorted(
            (path for path in home.glob("*") if is_run(path)), key=lambda path: path.stat().st_mtime
        )
        if found:
            return RunDir(found[-1])
        raise FileNotFoundError(2, "no run yet", str(home))
    for path in (Path(name), home / name):
        if is_run(path):
            return RunDir(path)
    raise FileNotFoundError(2, "no run there (no plan.json)", name)
