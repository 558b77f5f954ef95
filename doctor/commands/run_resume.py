"""``doctor run --resume RUN``: a run that goes on, who is told of it, and the terminal that stays with a run of ours."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, alerting, several
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.alert_follow import AlertThread
    from doctor.launch import StartedRun
    from runner.alert_settings import AlertsSection


def resume(namespace: argparse.Namespace) -> int:
    """Go on with the run that ``--resume`` names. Raises CommandError."""
    from doctor import service
    from doctor.launch import LaunchError
    from runner.plan import PlanError

    if namespace.profile is not None or namespace.overrides or namespace.run_dir or namespace.dry_run:
        raise CommandError(
            say("--resume takes the run as it was planned: no profile, --set, --run-dir or --dry-run"),
            Exit.USAGE,
        )

    alerts = _alerts_of_resumed(namespace)

    def go_on() -> StartedRun:
        try:
            return service.resume_run(
                namespace.resume,
                namespace.python,
                namespace.approximate,
                several.of(namespace, 0),
                several.task(namespace),
            )
        except FileNotFoundError as error:
            raise CommandError(no_such_run(namespace.resume, error), Exit.USAGE) from None
        except LaunchError as error:
            raise CommandError(error.text) from None
        except PlanError as error:
            raise CommandError(error.problem, Exit.USAGE) from None

    return begin(go_on, namespace.detach, alerts)


def _alerts_of_resumed(namespace: argparse.Namespace) -> AlertsSection:
    """Return who is told of a run that goes on: those of before and those named now, who are kept with it."""
    from runner.alert_settings import read_settings, write_settings
    from runner.rundir import find_run

    try:
        run = find_run(namespace.resume)
    except FileNotFoundError as error:
        raise CommandError(no_such_run(namespace.resume, error), Exit.USAGE) from None
    alerts = alerting.settings_of(namespace, read_settings(run))
    if namespace.alerts or namespace.alert_kinds:
        try:
            write_settings(run, alerts)
        except OSError as error:
            raise CommandError(
                t("{run} cannot be written: {error}", run=run.name, error=error.strerror or str(error))
            ) from None
    return alerts


def no_such_run(name: str, error: FileNotFoundError) -> str:
    """Return the sentence for a run that is not there; it says where was looked."""
    return say(
        t(
            "there is no run {name} (looked in {place}); `doctor runs` lists them",
            name=name,
            place=str(error.filename),
        )
    )


def begin(how: Callable[[], StartedRun], detach: bool, alerts: AlertsSection) -> int:
    """Start, and stay with it; the bell rings here, every other alert is told by a process beside the run."""
    from doctor.commands.attached import begin

    ringing: list[AlertThread | None] = []

    def ring(started: StartedRun) -> None:
        ringing.append(alerting.follow_run(started.run, alerts, bell_only=True))

    try:
        return begin(how, detach, None if detach else ring)
    finally:
        for thread in ringing:
            alerting.finish(thread)
