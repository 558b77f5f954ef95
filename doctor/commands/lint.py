"""``doctor lint FILE...``: common mistakes in training scripts and notebooks, judged by what is installed."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, lint_fix
from doctor.language import say
from runner.strings import shown

if TYPE_CHECKING:
    from doctor.model import Finding

SECTIONS = ("python", "packages", "torch", "gpus", "environment")
"""What of the machine the rules ask about."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help=say("scripts, notebooks or folders of them, or a DeepSpeed JSON"),
    )
    parser.add_argument(
        "--facts", metavar="FILE", type=Path, help=say("judge by a recorded machine instead of this one")
    )
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment to examine"))
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=say("as JSON"))
    form.add_argument("--sarif", action="store_true", help=say("the report as SARIF 2.1.0"))
    parser.add_argument(
        "--fail-on", choices=("fail", "warn", "note"), default="fail",
        help=say("exit with 1 from this level on (default: fail)"),
    )  # fmt: skip
    lint_fix.configure(parser)


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.commands.check import load_or_examine
    from doctor.commands.reading import script_or_complaint
    from doctor.model import LEVELS

    asked = lint_fix.is_asked_for(namespace)
    sources, unread = _sources(namespace.files)
    snapshot = load_or_examine(namespace.facts, namespace.python, SECTIONS)
    if asked:
        paths = [path for path, _ in sources if path.suffix != ".json"]
        if namespace.diff:
            return lint_fix.print_patch(namespace, paths, snapshot)
        written = lint_fix.rewrite(namespace, paths, snapshot)
        sources = [(path, script_or_complaint(path) if path in written else text) for path, text in sources]
    findings = [found for path, source in sources for found in service.lint(source, str(path), snapshot)]
    print(_render(namespace, findings, len(sources)))
    worst = LEVELS.index(namespace.fail_on)
    if any(LEVELS.index(found.level) <= worst for found in findings):
        return Exit.FOUND
    unclear = unread or any(found.level == "unknown" for found in findings)
    return Exit.COULD_NOT_LOOK if unclear else Exit.OK


def _sources(names: list[str]) -> tuple[list[tuple[Path, str]], bool]:
    """Return the sources that could be read, and whether one could not (said on stderr).

    Raises:
        CommandError: none could be read, or a folder holds no script.
    """
    from doctor.commands import complain
    from doctor.commands.reading import script_or_complaint

    sources: list[tuple[Path, str]] = []
    trouble: list[CommandError] = []
    for path in _scripts(names):
        try:
            sources.append((path, script_or_complaint(path)))
        except CommandError as error:
            trouble.append(error)
    if trouble and not sources:
        raise trouble[0]
    for one in trouble:
        complain(one.text)
    return sources, bool(trouble)


def _scripts(names: list[str]) -> Iterator[Path]:
    from doctor.commands.reading import scripts_in
    from runner.text import t

    for name in names:
        if not (path := Path(name)).is_dir():
            yield path
        elif found := scripts_in(path):
            yield from found
        else:
            raise CommandError(t("{folder} holds no script and no notebook", folder=name), Exit.USAGE)


def _render(namespace: argparse.Namespace, findings: list[Finding], count: int) -> str:
    from doctor.judge import fold_symptoms
    from doctor.model import Report, t
    from doctor.render import layout, structured, text

    if namespace.json:
        return structured.findings_as_json(findings)
    if namespace.sarif:
        return structured.as_sarif(Report(diagnoses=fold_symptoms(findings)))
    width, colour = layout.columns(sys.stdout), layout.wants_colour(sys.stdout)
    lines: list[str] = []
    for found in findings:
        lines += [shown(found.subject), *text.finding_lines(found, width, colour), ""]
    lines.append(
        say(
            t(
                "{count} {count:finding|findings} in {files} {files:file|files}",
                count=len(findings),
                files=count,
            )
        )
    )
    if findings and not namespace.fix:
        files = " ".join(
            dict.fromkeys(shlex.quote(shown(found.subject.partition(":")[0])) for found in findings)
        )
        lines += layout.indent(
            say(t("What of it can be rewritten: doctor lint --fix {files}", files=files)), width, "", "  "
        )
    return "\n".join(lines)
