"""The options of ``doctor run`` that start more than one process, and what SLURM says of itself."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.running import PlannedRun
    from doctor.slurm import SlurmTask
    from doctor.together import Together


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        say("several processes"),
        say(
            "The same profile on several cards or machines: the same updates, shared. Under SLURM: srun doctor run PROFILE"
        ),
    )
    group.add_argument(
        "--nproc", default="", metavar="N", help=say("processes on this machine; gpu: one for each card")
    )
    group.add_argument(
        "--nnodes", type=int, default=1, metavar="N", help=say("machines; started on each of them")
    )
    group.add_argument(
        "--rdzv",
        default="",
        metavar="HOST:PORT",
        help=say("where they meet: the first machine, and a free port there"),
    )
    group.add_argument(
        "--node-rank", type=int, metavar="N", help=say("which machine this is, from 0 (the first)")
    )
    group.add_argument(
        "--accelerate-config", "--config_file", dest="overrides", action="append", metavar="FILE",
        type=_as_override("accelerate_config"),
        help=say("a file of `accelerate config` (YAML): processes, precision and strategy are read from it and held against the profile"),
    )  # fmt: skip
    group.add_argument(
        "--deepspeed-config", dest="overrides", action="append", metavar="FILE", type=_as_override("deepspeed_config"),
        help=say("a DeepSpeed file (JSON), likewise"),
    )  # fmt: skip


def _as_override(key: str) -> Callable[[str], str]:
    """Return what makes of a file's name the words of ``--set`` that name it."""
    return lambda path: f"parallel.{key}={json.dumps(path)}"


def asked(namespace: argparse.Namespace) -> bool:
    """Return whether more than one process was asked for, in whatever way."""
    return bool(namespace.nproc or namespace.nnodes != 1 or namespace.rdzv or namespace.node_rank is not None)


def of(namespace: argparse.Namespace, cards: int) -> Together | None:
    """Return how many processes were asked for. Raises CommandError."""
    from doctor.start_errors import LaunchError
    from doctor.together import together_in_step, together_of

    if not asked(namespace):
        return None
    nproc = namespace.nproc or "1"
    try:
        by_step = namespace.nnodes == 1 and not namespace.rdzv and namespace.node_rank is None
        if by_step and (step := _slurm_task()) is not None:
            return together_in_step(nproc, step, cards)
        return together_of(nproc, namespace.nnodes, namespace.node_rank, namespace.rdzv, cards)
    except LaunchError as error:
        raise CommandError(error.text, Exit.USAGE) from None


def for_plan(namespace: argparse.Namespace, planned: PlannedRun, task: SlurmTask | None) -> Together | None:
    """Return how many processes to start: as asked for, else as the plan's configuration file says for one machine. Raises
    CommandError."""
    from doctor.rendezvous import job_over_machines
    from doctor.together import together_of

    if not asked(namespace) and task is None and (told := job_over_machines(os.environ)) is not None:
        sys.stderr.write(f"{say(told)}\n")
    cards, section = planned.plan.machine.gpu_count, planned.plan.profile.parallel
    if asked(namespace) or task is not None or section.processes < 2 or section.machines > 1:
        return of(namespace, cards)
    return together_of(str(section.processes), 1, None, "", cards)


def share(
    planned: PlannedRun, together: Together | None, task: SlurmTask | None, run_dir: Path | None
) -> PlannedRun:
    """Return a planned run judged by what each of its processes takes, with how they would share it."""
    from doctor import service

    processes = together.world_size if together else task.size if task else 1
    return service.share_run(planned, processes, str(run_dir or ""))


def task(namespace: argparse.Namespace) -> SlurmTask | None:
    """Return which of srun's tasks this is, as one rank; None: of none, or each task starts processes of its own. Raises
    CommandError, also where torchrun started several of us."""
    from doctor.rendezvous import started_by_torchrun

    found = None if asked(namespace) else _slurm_task()
    if found is None and (why := started_by_torchrun(os.environ)) is not None:
        raise CommandError(why, Exit.USAGE)
    return found


def _slurm_task() -> SlurmTask | None:
    from doctor.slurm import slurm_task
    from doctor.start_errors import LaunchError

    try:
        return slurm_task(os.environ)
    except LaunchError as error:
        raise CommandError(error.text, Exit.USAGE) from None


def _meeting_dir(namespace: argparse.Namespace, found: SlurmTask) -> Path:
    """Return the run directory that all tasks of a step mean. Raises LaunchError, FileNotFoundError, ProfileError."""
    from doctor.running import find_profile
    from doctor.slurm_join import common_dir
    from runner.profile import load_profile
    from runner.rundir import find_run

    if namespace.resume is not None:
        return find_run(namespace.resume).path
    if namespace.run_dir is not None:
        return Path(namespace.run_dir)
    return common_dir(found, load_profile(find_profile(namespace.profile), namespace.overrides).run.name)


@contextlib.contextmanager
def telling_others(namespace: argparse.Namespace, found: SlurmTask | None) -> Iterator[None]:
    """As the first task of srun: what goes wrong before the run stands is told to the others, who wait for it."""
    from doctor.slurm_join import tell_refused
    from doctor.start_errors import LaunchError
    from runner.profile import ProfileError

    try:
        yield
    except BaseException:
        # A profile or run that this task cannot read they cannot read either, and wait for nothing.
        with contextlib.suppress(LaunchError, FileNotFoundError, ProfileError):
            if found is not None and (namespace.resume or namespace.profile):
                tell_refused(found, _meeting_dir(namespace, found))
        raise


def join(namespace: argparse.Namespace, found: SlurmTask) -> int:
    """Be a later task of srun: one rank of the run that the first task starts. Raises CommandError."""
    from doctor.slurm_join import join
    from doctor.start_errors import LaunchError

    if namespace.dry_run:
        return Exit.OK  # the first task shows the plan
    try:
        path = _meeting_dir(namespace, found)
        flags = ["--resume"] * (namespace.resume is not None) + ["--approximate"] * namespace.approximate
        join(found, path, dict(os.environ), flags)
    except LaunchError as error:
        raise CommandError(error.text) from None
    except (FileNotFoundError, ValueError) as error:
        raise CommandError(str(error), Exit.USAGE) from None
