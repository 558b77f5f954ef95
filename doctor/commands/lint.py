"""``doctor lint FILE...``: common mistakes in training scripts and notebooks, judged by what is installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.model import Finding

SCRIPT_LIMIT_BYTES = 4 << 20
SECTIONS = ("python", "packages", "torch", "gpus", "environment")
"""What of the machine the rules ask about."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help=say("scripts, notebooks, or folders of them")
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


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.commands.check import load_or_examine
    from doctor.model import LEVELS

    scripts = list(_scripts(namespace.files))
    snapshot = load_or_examine(namespace.facts, namespace.python, SECTIONS)
    findings = [found for path in scripts for found in service.lint(_read(path), str(path), snapshot)]
    print(_render(namespace, findings, len(scripts)))
    worst = LEVELS.index(namespace.fail_on)
    if any(LEVELS.index(found.level) <= worst for found in findings):
        return Exit.FOUND
    return Exit.COULD_NOT_LOOK if any(found.level == "unknown" for found in findings) else Exit.OK


def _scripts(names: list[str]) -> list[Path]:
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            found += sorted(
                item for kind in ("*.py", "*.ipynb") for item in path.rglob(kind) if item.is_file()
            )
        else:
            found.append(path)
    return found


def _read(path: Path) -> str:
    from runner.text import t

    try:
        if not path.is_file():
            raise FileNotFoundError(2, "not a file")
        with path.open("rb") as file:
            raw = file.read(SCRIPT_LIMIT_BYTES + 1)
    except OSError as error:
        text = t("cannot read {file}: {error}", file=str(path), error=error.strerror or str(error))
        raise CommandError(text, Exit.USAGE) from None
    if len(raw) > SCRIPT_LIMIT_BYTES:
        raise CommandError(t("{file} is larger than 4 MB: not a script", file=str(path)), Exit.USAGE)
    return raw.decode("utf-8", "replace")


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
        lines += [found.subject, *text.finding_lines(found, width, colour), ""]
    lines.append(say(t("{count} findings in {files} files", count=len(findings), files=count)))
    return "\n".join(lines)
