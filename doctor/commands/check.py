"""``doctor check``: what is wrong with this machine and environment, why, and what to do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, complain
from doctor.language import say

if TYPE_CHECKING:
    from doctor.model import Report, Snapshot
    from runner.text import Text


def configure(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=say("the report as JSON"))
    form.add_argument("--sarif", action="store_true", help=say("the report as SARIF 2.1.0"))
    form.add_argument("--junit", action="store_true", help=say("the report as JUnit XML"))
    form.add_argument(
        "--markdown", action="store_true", help=say("redacted Markdown to paste into a bug report")
    )
    form.add_argument("--brief", action="store_true", help=say("one line, for a login script"))
    parser.add_argument(
        "-v", "--verbose", action="store_true", help=say("notes with their advice and evidence too")
    )
    form.add_argument("--why", metavar="ID", help=say("what a finding rests on, and how to see it yourself"))
    parser.add_argument(
        "--facts",
        metavar="FILE",
        type=Path,
        help=say("judge a recorded machine (a snapshot file) instead of this one"),
    )
    purpose = parser.add_mutually_exclusive_group()
    purpose.add_argument(
        "--profile", metavar="P", help=say("also judge the machine for this run: a profile's name or file")
    )
    purpose.add_argument(
        "--script", metavar="FILE", help=say("also judge the machine for this training script, and lint it")
    )
    purpose.add_argument("file", nargs="?", metavar="FILE.py", help=say("a training script, as --script"))
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    parser.add_argument(
        "--deep",
        action="store_true",
        help=say("also use torch for real, in a process of its own: imports, every GPU, several processes"),
    )
    parser.add_argument(
        "--deep-timeout", metavar="SECONDS", type=float, default=60.0,
        help=say("how long --deep may take (default: 60)"),
    )  # fmt: skip
    parser.add_argument(
        "--data", metavar="PATH", help=say("with --deep: also measure how fast this file or folder is read")
    )
    parser.add_argument(
        "--fleet", nargs="*", metavar="FILE",
        help=say("all machines of a job judged together: under torchrun or srun, or of these snapshot files"),
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", choices=("fail", "warn", "note", "unknown"), default="fail",
        help=say("exit with 1 from this level on (default: fail)"),
    )  # fmt: skip


def run(namespace: argparse.Namespace) -> int:
    from doctor import service

    if namespace.fleet is not None:
        from doctor.commands import fleet

        return fleet.run(namespace)
    if namespace.why:
        _known(namespace.why)
    if namespace.file is not None:
        from doctor.commands.named_file import script_named

        namespace.script = script_named(namespace.file)
    snapshot = _examined(namespace)
    snapshot, report, missing = _judged_for(namespace, snapshot)
    code = service.exit_code(report, namespace.fail_on)
    if missing and code == Exit.OK:
        code = Exit.FOUND
    print(_render(namespace, report, snapshot, code))
    for text in missing:
        complain(text)
    if namespace.facts is None:
        from doctor.commands.half_done import name_what_was_cut_off

        name_what_was_cut_off()
    return code


def _known(finding_id: str) -> None:
    """Refuse an id that no check gives, before anything is read.

    Raises:
        CommandError: no check gives it.
    """
    from doctor import pages
    from runner.text import t

    if finding_id.startswith("fleet-") and finding_id in pages.all_pages():
        raise CommandError(
            t("{id} compares several machines: `doctor help {id}` explains it, `doctor check --fleet` looks for it", id=finding_id),
            Exit.USAGE,
        )  # fmt: skip
    if finding_id not in pages.all_pages():
        raise CommandError(t("No check gives {id}. `doctor help` lists the ids.", id=finding_id), Exit.USAGE)


def _examined(namespace: argparse.Namespace) -> Snapshot:
    """Return the snapshot that the options ask for, with the deep section where they ask for that."""
    from doctor import service
    from runner.text import t

    if not namespace.deep:
        if namespace.data is not None:
            raise CommandError(t("--data is measured by --deep: add --deep"), Exit.USAGE)
        return load_or_examine(namespace.facts, namespace.python)
    if namespace.facts is not None:
        raise CommandError(
            t("--deep tries this machine, --facts judges another: leave one of them out"), Exit.USAGE
        )
    if not 1 <= namespace.deep_timeout <= 3600:
        raise CommandError(t("--deep-timeout takes 1 to 3600 seconds"), Exit.USAGE)
    snapshot = load_or_examine(None, namespace.python)
    if sys.stderr.isatty():
        words = t("Using torch for real, for at most {seconds} s ...", seconds=round(namespace.deep_timeout))
        print(say(words), file=sys.stderr)
    data = str(Path(namespace.data).expanduser().absolute()) if namespace.data else None
    return service.examine_deeply(snapshot, namespace.python, data, namespace.deep_timeout)


def _judged_for(namespace: argparse.Namespace, snapshot: Snapshot) -> tuple[Snapshot, Report, list[Text]]:
    """Return the snapshot with its purpose, the report on both, and what the purpose names that is not here."""
    from doctor import service

    if namespace.profile is not None:
        from doctor.commands.run import plan

        planned = plan(namespace.profile, [], None, None, snapshot)
        missing = planned.missing if namespace.facts is None else []  # another machine's files are not here
        return planned.snapshot, planned.report, list(missing)
    if namespace.script is not None:
        from doctor.commands.reading import script_or_complaint

        text = script_or_complaint(namespace.script)
        if namespace.facts is None:
            snapshot = service.beside_script(snapshot, namespace.script, namespace.python)
        return *service.judge_for_script(snapshot, text, namespace.script), []
    return snapshot, service.judge(snapshot), []


def load_or_examine(
    facts: Path | None, python: str | None, sections: tuple[str, ...] | None = None
) -> Snapshot:
    """Return the snapshot that the options ask for (of this machine: only ``sections``, all by default).

    Raises:
        CommandError: the file or interpreter named cannot be used; the message says why.
    """
    from doctor import service
    from doctor.machine import BadSnapshot
    from runner.text import t

    if facts is None:
        from doctor.probes.target import BadPython

        try:
            return service.examine(python, sections)
        except BadPython as error:
            raise CommandError(error.text, Exit.USAGE) from None
    try:
        return service.load(facts)
    except BadSnapshot as error:
        raise CommandError(error.text, Exit.USAGE) from None
    except OSError as error:
        name = str(error.filename or facts)  # of a folder: the snapshot that is not in it
        text = t("cannot read {file}: {error}", file=name, error=error.strerror or str(error))
        raise CommandError(text, Exit.USAGE) from None


def _render(namespace: argparse.Namespace, report: Report, snapshot: Snapshot, code: int) -> str:
    from doctor.render import layout, text

    if namespace.json or namespace.sarif or namespace.junit:
        from doctor.render import structured

        if namespace.json:
            return structured.as_json(report, snapshot, code)
        return structured.as_sarif(report) if namespace.sarif else structured.as_junit(report)
    if namespace.markdown:
        return _markdown(snapshot, namespace.facts is None)
    if namespace.brief:
        return text.brief_line(report)
    width, colour = layout.columns(sys.stdout), layout.wants_colour(sys.stdout)
    if namespace.why:
        from doctor.render import why

        return "\n".join(why.why_lines(namespace.why, report, snapshot, width, colour))
    return "\n".join(text.report_lines(report, snapshot, width, colour, namespace.verbose))


def _markdown(snapshot: Snapshot, live: bool) -> str:
    from doctor import service
    from doctor.render import structured

    shared = service.shareable(snapshot, live)
    return structured.as_markdown(service.judge(shared), shared)
