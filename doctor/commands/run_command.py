"""``doctor run -- COMMAND``: what is asked on the command line for a command of the user's own, its plan, and its start."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, alerting, complain, several
from doctor.language import say
from runner.strings import shown
from runner.text import t

if TYPE_CHECKING:
    from doctor.command_run import CommandOptions
    from doctor.launch import StartedRun
    from runner.command_plan import CommandPlan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options that go with a command after ``--``."""
    parser.usage = "%(prog)s PROFILE | --resume RUN | [--retry N] [--on-finish CMD] -- COMMAND ..."
    group = parser.add_argument_group(
        say("your own script"),
        say("doctor run -- python train.py --lr 1e-4   (or torchrun, accelerate launch, a shell script): the same run "
            "directory, its output also in trainer.log, progress read from it, samples and stacks beside it, a failure "
            "explained. It survives the end of the SSH session, and the exit status is the command's own."),
    )  # fmt: skip
    group.add_argument(
        "--retry", type=int, default=0, metavar="N",
        help=say("start the command again after a failure, up to N times (DOCTOR_RETRY counts them); not after Ctrl-C, and "
                 "not where it ends in the same way three times without a step further"),
    )  # fmt: skip
    group.add_argument(
        "--resume-with", default="", metavar="WORDS",
        help=say("with --retry: add these words where a whole checkpoint of the script's own is there, for example "
                 "'--resume_from_checkpoint {checkpoint}' (DOCTOR_CHECKPOINT holds its path too)"),
    )  # fmt: skip
    group.add_argument(
        "--checkpoints", default="", metavar="GLOB",
        help=say("with --retry: what the script's checkpoints are called, where neither Trainer, accelerate nor Lightning "
                 "writes them: 'out/model_*.pt'"),
    )  # fmt: skip
    group.add_argument(
        "--on-finish", default="", metavar="CMD",
        help=say("run a shell command after the end, such as shutdown; a countdown comes first, and any key cancels it. "
                 "Not after a stop by hand"),
    )  # fmt: skip
    group.add_argument("--on-finish-always", action="store_true", help=say("also after a stop by hand"))
    group.add_argument(
        "--countdown", type=float, default=30.0, metavar="SECONDS",
        help=say("how long --on-finish can be cancelled (default: 30)"),
    )  # fmt: skip


def refuse_without_command(namespace: argparse.Namespace) -> None:
    """Raises CommandError: an option that goes with a command, and no command."""
    asked = (namespace.retry, namespace.resume_with, namespace.checkpoints, namespace.on_finish, namespace.on_finish_always)  # fmt: skip
    if not any(asked):
        return
    if namespace.profile is None and namespace.resume is None:
        words = t(
            "--retry and --on-finish are for a command of your own: doctor run --retry 2 -- python train.py"
        )
    else:
        again = f"--resume {namespace.resume}" if namespace.resume else namespace.profile
        words = t("--retry and --on-finish go with a command, and a run of a profile is one: doctor run --on-finish CMD -- doctor run {profile}",
                  profile=shown(again))  # fmt: skip
    raise CommandError(words, Exit.USAGE)


def run(namespace: argparse.Namespace) -> int:
    """Start a command of the user's own and stay with it, or leave it to itself."""
    from doctor import service
    from doctor.commands import supervised
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython

    _refuse_mixed(namespace)
    alerts = alerting.settings_of(namespace)
    try:
        plan, snapshot = service.plan_command(namespace.command, _options(namespace), namespace.python)
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text, Exit.USAGE) from None
    if namespace.dry_run:
        print("\n".join(plan_lines(plan)))
        return Exit.OK

    def start() -> StartedRun:
        try:
            started = service.start_command(plan, snapshot, namespace.run_dir, alerts)
        except LaunchError as error:
            raise CommandError(error.text) from None
        if started.sampler_why is not None:
            complain(started.sampler_why)
        return started

    @contextlib.contextmanager
    def ringing(started: StartedRun) -> Iterator[None]:
        bell = alerting.follow_run(started.run, alerts, bell_only=True)
        try:
            yield
        finally:
            alerting.finish(bell)

    return supervised.begin(start, namespace.detach, _set_line(plan), ringing)


def _options(namespace: argparse.Namespace) -> CommandOptions:
    from doctor.command_run import CommandOptions

    return CommandOptions(
        retries=namespace.retry, resume_with=namespace.resume_with, checkpoints=namespace.checkpoints,
        on_finish=namespace.on_finish, on_finish_always=namespace.on_finish_always, countdown_s=namespace.countdown,
    )  # fmt: skip


def _refuse_mixed(namespace: argparse.Namespace) -> None:
    if not namespace.command:
        raise CommandError(say("no command stands after --: doctor run -- python train.py"), Exit.USAGE)
    if (
        namespace.profile is not None
        or namespace.overrides
        or namespace.resume is not None
        or namespace.anyway
        or several.asked(namespace)
    ):
        raise CommandError(
            say(
                "a command of your own takes no profile, --set, --resume, --anyway or --nproc: start torchrun itself there"
            ),
            Exit.USAGE,
        )
    if namespace.retry < 0 or not 0 <= namespace.countdown < float("inf"):
        raise CommandError(say("--retry and --countdown take numbers from 0 up"), Exit.USAGE)
    if namespace.on_finish_always and not namespace.on_finish:
        raise CommandError(say("--on-finish-always needs --on-finish CMD"), Exit.USAGE)
    if (namespace.resume_with or namespace.checkpoints) and not namespace.retry:
        raise CommandError(say("--resume-with and --checkpoints need --retry N"), Exit.USAGE)
    try:
        shlex.split(namespace.resume_with)
    except ValueError as error:
        raise CommandError(say(t("--resume-with: {error}", error=str(error))), Exit.USAGE) from None


def _set_line(plan: CommandPlan) -> str:
    """Return what was set for a command, in one line; empty: nothing."""
    if not plan.environment:
        return ""
    words = " ".join(f"{name}={value}" for name, value in plan.environment.items())
    from doctor.render.layout import columns, indent

    said = say(t("Set for it: {variables}   (why: --dry-run, or its report)", variables=words))
    return "\n".join(indent(said, columns(sys.stderr), "", "  "))


def plan_lines(plan: CommandPlan) -> Iterator[str]:
    """Yield what is set for a command before it starts, each with its reason."""
    from doctor.render.layout import columns, indent
    from runner.strings import printable

    width = columns(sys.stderr)
    yield say(t("Command: {command}", command=printable(plan.command)))
    for decision in plan.decisions:
        yield from indent(
            f"{decision.name}={printable(str(decision.value))}: {say(decision.why)}", width, "  ", "      "
        )
