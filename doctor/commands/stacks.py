"""``doctor stacks``: where a run, or any Python process, is spending its time now."""

from __future__ import annotations

import argparse
import sys

from doctor.commands import CommandError, Exit
from doctor.commands.run import no_such_run
from doctor.language import say
from runner.text import t


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="RUN|PID", help=say("a run's directory or name, last, or a process number")
    )
    parser.add_argument(
        "--seconds", type=int, default=5, metavar="N", help=say("how long to look (default: 5)")
    )


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.render.layout import columns
    from doctor.render.run_text import cut, frame_line
    from doctor.stacks import hottest

    if namespace.seconds < 1:
        raise CommandError(say("--seconds takes a whole number from 1 on"), Exit.USAGE)
    pid = _pid_of(namespace.target)
    sample = service.record_stacks(pid, namespace.seconds)
    if sample.trouble:
        raise CommandError(
            t("no stacks of process {pid}: {why}", pid=pid, why=say(sample.trouble.why)), Exit.COULD_NOT_LOOK
        )
    print(say(t("process {pid}, {seconds} s, {samples} {samples:stack|stacks}: share on top, share with callees",
                pid=pid, seconds=namespace.seconds, samples=sample.samples)))  # fmt: skip
    for frame in hottest(sample.stacks, limit=20):
        print(cut(frame_line(frame), columns(sys.stdout)))
    if sample.errors:
        print(say(t("{count} {count:look|looks} failed or were torn", count=sample.errors)), file=sys.stderr)
    return Exit.OK


def _pid_of(target: str) -> int:
    from doctor import service

    if target.isdecimal():
        return int(target)
    try:
        pid = service.trainer_pid(target)
    except FileNotFoundError as error:
        raise CommandError(no_such_run(target, error), Exit.USAGE) from None
    if pid is None:
        raise CommandError(t("the trainer of {run} does not run here (any more)", run=target))
    return pid
