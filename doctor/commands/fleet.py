"""``doctor check --fleet``: all machines of a job judged together, under a launcher or from snapshot files."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from runner.text import t

if TYPE_CHECKING:
    from doctor.fleet_records import Member

TORCHRUN = "torchrun --nnodes 2 --nproc_per_node 1 --rdzv_backend c10d --rdzv_endpoint HOST:29400 --no_python doctor check --fleet"
_OF_ONE_MACHINE = ("sarif", "junit", "brief", "why", "facts", "profile", "script", "deep", "data")


def run(namespace: argparse.Namespace) -> int:
    """Judge them; under a launcher rank 0 alone speaks."""
    from doctor.commands.merge import form_of, read_members, show

    _refuse_of_one_machine(namespace)
    members = read_members(namespace.fleet) if namespace.fleet else _gathered(namespace)
    return show(members, form_of(namespace), namespace.fail_on) if members else Exit.OK


def _gathered(namespace: argparse.Namespace) -> list[Member]:
    """Return all members on rank 0, none on the others. Raises CommandError."""
    from doctor import service
    from doctor.fleet_gather import launched
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython

    try:
        environ = launched(os.environ)
        if environ is None:
            raise CommandError(
                t("nothing here says which rank this is. On every machine: {command}; or: srun doctor check --fleet; or name snapshot files", command=TORCHRUN),
                Exit.USAGE,
            )  # fmt: skip
        return service.gather_fleet(namespace.python, namespace.deep_timeout, environ)
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text, Exit.COULD_NOT_LOOK) from None


def _refuse_of_one_machine(namespace: argparse.Namespace) -> None:
    """Refuse options that say nothing of several machines. Raises CommandError."""
    given = [f"--{name}" for name in _OF_ONE_MACHINE if getattr(namespace, name)]
    if given:
        raise CommandError(
            t("{names}: of one machine, not with --fleet (which goes with --json, --markdown and --fail-on)",
              names=", ".join(given)), Exit.USAGE,
        )  # fmt: skip
