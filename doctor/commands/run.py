"""``doctor run``: start a run from a profile, go on with one, or supervise a command of the user's own; attached or
detached."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, alerting, run_command, run_resume, several
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.launch import StartedRun
    from doctor.model import Snapshot
    from doctor.running import PlannedRun
    from doctor.slurm import SlurmTask
    from doctor.together import Together


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "profile", nargs="?", metavar="PROFILE", help=say("a shipped profile's name, or a TOML file")
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="overrides",
        help=say("change one value of the profile; may be given again"),
    )  # fmt: skip
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help=say("where the run goes (default: runs/NAME-TIME)")
    )
    parser.add_argument(
        "--resume", metavar="RUN", help=say("go on with a run: its directory, its name, or last")
    )
    parser.add_argument(
        "--approximate", action="store_true",
        help=say("with --resume: go on also where it cannot be exact (another card, thread count or torch); it is written "
                 "into the run"),
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help=say("print the plan with its reasons and start nothing")
    )
    parser.add_argument(
        "--detach", action="store_true", help=say("start it and return; watch it with doctor watch")
    )
    parser.add_argument("--anyway", action="store_true", help=say("start although findings say it will fail"))
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment that trains"))
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    several.configure(parser)
    run_command.configure(parser)
    alerting.configure(parser)


def run(namespace: argparse.Namespace) -> int:
    if namespace.command is not None:
        return run_command.run(namespace)
    if namespace.rest:
        words = " ".join([namespace.profile, *namespace.rest])
        raise CommandError(
            say(t("a command of your own stands after --: doctor run -- {command}", command=words)),
            Exit.USAGE,
        )
    run_command.refuse_without_command(namespace)
    task = several.task(namespace)
    if task is not None and task.rank > 0 and (namespace.resume or namespace.profile):
        return several.join(namespace, task)
    with several.telling_others(namespace, task):
        return _run_of_ours(namespace, task)


def _run_of_ours(namespace: argparse.Namespace, task: SlurmTask | None) -> int:
    """Start or continue a run of the profile. Raises CommandError."""
    if namespace.resume is not None:
        return run_resume.resume(namespace)
    if namespace.approximate:
        raise CommandError(say("--approximate goes with --resume RUN"), Exit.USAGE)
    if namespace.profile is None:
        raise CommandError(_no_profile(), Exit.USAGE)
    planned = plan(namespace.profile, namespace.overrides, namespace.python, namespace.run_dir)
    alerts = alerting.settings_of(namespace, planned.alerts)
    together = several.for_plan(namespace, planned, task)
    planned = several.share(planned, together, task, namespace.run_dir)
    if namespace.dry_run:
        print("\n".join(plan_lines(planned)))
        return Exit.FOUND if planned.failures or planned.missing else Exit.OK
    refuse_if_it_would_fail(planned, namespace.anyway)
    planned = dataclasses.replace(planned, alerts=alerts)
    where = namespace.run_dir
    if task is not None and where is None:
        from doctor.slurm_join import common_dir

        where = common_dir(task, planned.plan.run_name_base)
    return run_resume.begin(lambda: start(planned, where, together, task), namespace.detach, alerts)


def _no_profile() -> str:
    from doctor import service

    names = ", ".join(service.profile_names()) or "-"
    return say(
        t(
            "name a profile (one of {names}, or a TOML file), --resume RUN, or a command of your own after --",
            names=names,
        )
    )


def plan(
    profile: str,
    overrides: list[str],
    python: str | None,
    run_dir: Path | None = None,
    snapshot: Snapshot | None = None,
) -> PlannedRun:
    """Examine (or take ``snapshot``), plan and judge. Raises CommandError with every mistake of a profile."""
    from doctor import service
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython
    from runner.profile import ProfileError

    try:
        return service.plan_run(profile, overrides, python, snapshot, str(run_dir or ""))
    except ProfileError as error:
        head = say(
            t(
                "{profile} cannot be used, {count} {count:problem|problems}:",
                profile=error.source,
                count=len(error.problems),
            )
        )
        raise CommandError("\n  ".join([head, *map(say, error.problems)]), Exit.USAGE) from None
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text, Exit.USAGE) from None


def plan_lines(planned: PlannedRun) -> Iterator[str]:
    """Yield the plan as text: where it runs, every choice with its reason, what stands in its way."""
    from doctor.render.headline import environment_line, machine_line
    from doctor.render.layout import columns, indent
    from runner.strings import printable

    width = columns(sys.stdout)
    yield from indent(environment_line(planned.snapshot), width, "", "  ")
    yield from indent(machine_line(planned.snapshot), width, "", "  ")
    yield say(
        t("Plan: {name} ({digest})", name=printable(planned.plan.name), digest=planned.plan.digest[:12])
    )
    for decision in planned.plan.decisions:
        value = printable(str(decision.value))
        yield from indent(f"{decision.name} = {value}: {say(decision.why)}", width, "  ", "      ")
    for note in planned.notes:
        yield from indent(say(note), width, "  ", "      ")
    yield from obstacles(planned)


def obstacles(planned: PlannedRun) -> Iterator[str]:
    """Yield what speaks against a start: fail-level findings in full, then what is missing."""
    from doctor.render.layout import columns, indent, wants_colour
    from doctor.render.text import finding_lines

    width, colour = columns(sys.stdout), wants_colour(sys.stdout)
    for finding in planned.failures:
        yield from finding_lines(finding, width, colour)
    for text in planned.missing:
        yield from indent(say(text), width, "- ", "  ")


def refuse_if_it_would_fail(planned: PlannedRun, anyway: bool) -> None:
    """Show what stands in the way on stderr and raise CommandError, unless the user goes on anyway."""
    lines = list(obstacles(planned))
    if not lines:
        return
    print("\n".join(lines), file=sys.stderr)
    if not anyway:
        count = len(planned.failures) + len(planned.missing)
        raise CommandError(
            say(
                t(
                    "not started: {count} {count:thing above would make it fail. Mend it|things above would make it fail. Mend them}, or start with --anyway.",
                    count=count,
                )
            )
        )


def start(
    planned: PlannedRun,
    run_dir: Path | None,
    together: Together | None = None,
    task: SlurmTask | None = None,
) -> StartedRun:
    from doctor import service
    from doctor.launch import LaunchError

    try:
        return service.start_run(planned, run_dir, together, task)
    except LaunchError as error:
        raise CommandError(error.text) from None
