"""``doctor stacks``: where a run, or any Python process, is spending its time now; every rank of it on one page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.commands.run_resume import no_such_run
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.pyspy import Sample
    from doctor.rank_stacks import RankStack
    from doctor.stack_groups import Group

FORMS = ("text", "svg", "speedscope", "collapsed")
_SUFFIXES = {".svg": "svg", ".json": "speedscope", ".collapsed": "collapsed", ".folded": "collapsed"}
LONGEST_S = 3600


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="RUN|PID", help=say("a run's directory or name, last, or a process number")
    )
    parser.add_argument(
        "--seconds", type=int, default=5, metavar="N", help=say("how long to look (default: 5)")
    )
    parser.add_argument(
        "--format",
        choices=FORMS,
        help=say("text, a flame graph (svg), or for other tools (default: by the file's ending, else text)"),
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help=say("write there instead of printing"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service

    if not 1 <= namespace.seconds <= LONGEST_S:
        raise CommandError(t("--seconds takes a whole number from 1 to {most}", most=LONGEST_S), Exit.USAGE)
    form = namespace.format or _SUFFIXES.get(namespace.output.suffix if namespace.output else "", "text")
    if form == "text" and (ranks := _ranks_of(namespace.target, namespace.seconds)):
        _deliver("\n".join(_rank_page(ranks)) + "\n", namespace.output)
        return Exit.OK
    pid = _pid_of(namespace.target)
    sample, groups = service.record_stacks(pid, namespace.seconds)
    if sample.trouble:
        raise CommandError(
            t("no stacks of process {pid}: {why}", pid=pid, why=say(sample.trouble.why)), Exit.COULD_NOT_LOOK
        )
    _deliver(_formed(form, pid, namespace.seconds, sample, groups), namespace.output)
    if sample.errors:
        print(say(t("{count} {count:look|looks} failed or were torn", count=sample.errors)), file=sys.stderr)
    return Exit.OK


def _ranks_of(target: str, seconds: int) -> list[RankStack]:
    """Return where the processes of a run stand, now or at its end; none where one process trains, or a process was named."""
    from doctor import service

    if target.isdecimal():
        return []
    try:
        return service.rank_stacks(target, seconds)
    except FileNotFoundError as error:
        raise CommandError(no_such_run(target, error), Exit.USAGE) from None


def _rank_page(ranks: Sequence[RankStack]) -> list[str]:
    from doctor.render.layout import columns
    from doctor.render.rank_stacks_text import rank_stack_lines
    from doctor.render.run_text import cut

    return [cut(line, columns(sys.stdout)) for line in rank_stack_lines(ranks)]


def _formed(form: str, pid: int, seconds: int, sample: Sample, groups: Sequence[Group]) -> str:
    from doctor.render.flame_svg import flame_svg
    from doctor.render.stack_forms import collapsed, speedscope

    title = t("process {pid}, {seconds} s, {samples} {samples:stack|stacks}", pid=pid, seconds=seconds, samples=sample.samples)  # fmt: skip
    if form == "svg":
        return flame_svg(groups, say(title))
    if form == "speedscope":
        return speedscope(groups, sample.rate, str(title))
    if form == "collapsed":
        return collapsed(groups)
    return "\n".join(_text(pid, seconds, sample, groups)) + "\n"


def _text(pid: int, seconds: int, sample: Sample, groups: Sequence[Group]) -> list[str]:
    from doctor.render.layout import columns
    from doctor.render.run_text import cut, frame_line
    from doctor.stacks import hottest

    lines = [say(t("process {pid}, {seconds} s, {samples} {samples:stack|stacks}: share on top, share with callees",
                   pid=pid, seconds=seconds, samples=sample.samples))]  # fmt: skip
    for group in groups:
        if group.name:
            lines += ["", say(t("{name}, process {pid}:", name=group.name, pid=group.pid))]
        limit = 20 if len(groups) == 1 else 8
        lines += [cut(frame_line(frame), columns(sys.stdout)) for frame in hottest(group.stacks, limit)]
    return lines


def _deliver(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        words = t("{path} cannot be written: {error}", path=str(output), error=error.strerror or str(error))
        raise CommandError(words, Exit.USAGE) from None
    print(say(t("written: {path}", path=str(output))))


def _pid_of(target: str) -> int:
    from doctor import service

    if target.isdecimal():
        return int(target)
    try:
        pid = service.trainer_pid(target)
    except FileNotFoundError as error:
        raise CommandError(no_such_run(target, error), Exit.USAGE) from None
    if pid is not None:
        return pid
    if (kept := service.kept_stacks(target)) is not None:
        raise CommandError(
            t(
                "the trainer of {run} does not run here (any more); where it stood is kept in {path}",
                run=target,
                path=str(kept),
            )
        )
    raise CommandError(t("the trainer of {run} does not run here (any more)", run=target))
