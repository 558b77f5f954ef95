"""``doctor snapshot convert|resolve``: a snapshot as another tool's file, or with each file's address. No verb of its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from doctor.commands import CommandError, Exit, complain
from doctor.language import say

FORMATS = ("requirements", "pylock", "conda", "dockerfile", "apptainer", "cyclonedx", "markdown", "patch")
"""Those of doctor.snapshots.formats, named here so that --help imports nothing."""


def configure(verbs: Any) -> list[argparse.ArgumentParser]:
    convert = verbs.add_parser(
        "convert", help=say("write it in another tool's format, and say what that loses")
    )
    convert.add_argument("file", metavar="FILE", help=say("a snapshot file, a run, `here`, or a name from `doctor snapshot list`"))  # fmt: skip
    convert.add_argument("--format", choices=FORMATS, required=True, help=say("which format"))
    convert.add_argument("-o", "--output", metavar="FILE", help=say("where to (default: it is printed)"))
    convert.add_argument("--force", action="store_true", help=say("overwrite a file that is there"))
    resolve = verbs.add_parser(
        "resolve", help=say("ask the indexes for each wheel's address and digest (network)")
    )
    resolve.add_argument(
        "file", metavar="FILE", help=say("a snapshot file, or a name from `doctor snapshot list`")
    )
    resolve.add_argument(
        "-o", "--output", metavar="FILE", help=say("where to (default: NAME-resolved.json here)")
    )
    resolve.add_argument("--force", action="store_true", help=say("overwrite a file that is there"))
    return [convert, resolve]


def run_convert(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.snapshots.formats import FormatError

    try:
        rendered = service.convert_snapshot(namespace.file, namespace.format)
    except FormatError as error:
        for reason in error.reasons[:20]:
            complain(reason)
        raise CommandError(error.text) from None
    if namespace.output and namespace.output != "-":
        service.write_text(rendered.text, Path(namespace.output), namespace.force)
        print(namespace.output)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(rendered.text.encode("utf-8", "surrogateescape"))
    if rendered.lost:
        print(say("Not in it:"), file=sys.stderr)
    for text in rendered.lost:
        print(f"  {say(text)}", file=sys.stderr)
    return Exit.OK


def run_resolve(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.resolve import ResolveError
    from runner.text import t

    try:
        path, found = service.resolve_snapshot(namespace.file, namespace.output, namespace.force)
    except ResolveError as error:
        raise CommandError(error.text) from None
    print(path)
    for name, why in found.open.items():
        complain(t("{name}: {why}", name=name, why=say(why)))
    summary = t("{proven} files proven by their METADATA or RECORD, {by_name} by name alone, {open} open", proven=found.proven, by_name=len(found.by_name), open=len(found.open))  # fmt: skip
    print(say(summary), file=sys.stderr)
    return Exit.FOUND if found.open else Exit.OK
