"""``doctor wheelhouse DIR``: collect the wheels for a machine without network, with a script that installs
them."""

from __future__ import annotations

import argparse
from pathlib import Path

from doctor.commands import CommandError, Exit
from doctor.language import say
from runner.text import t


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help=say("the folder to fill"))
    parser.add_argument(
        "--extra",
        metavar="NAMES",
        default="",
        help=say("what else to take, with commas between: tui,train,stacks,demo"),
    )
    parser.add_argument(
        "--python", metavar="PATH", help=say("the Python whose pip fetches, and that the wheels are for")
    )
    parser.add_argument("--index-url", metavar="URL", help=say("the index to fetch from, as pip takes it"))
    parser.add_argument(
        "--find-links",
        metavar="DIR",
        action="append",
        default=[],
        help=say("a folder of wheels to take from too"),
    )
    parser.add_argument("--no-index", action="store_true", help=say("fetch from --find-links alone"))


def pip_options(namespace: argparse.Namespace) -> list[str]:
    options = ["--index-url", namespace.index_url] if namespace.index_url else []
    options += [word for folder in namespace.find_links for word in ("--find-links", folder)]
    return [*options, "--no-index"] if namespace.no_index else options


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.render.layout import human_bytes
    from doctor.wheelhouse import SCRIPT, WheelhouseError

    extras = [name.strip() for name in namespace.extra.split(",") if name.strip()]
    try:
        made = service.collect_wheels(namespace.folder, extras, namespace.python, pip_options(namespace))
    except WheelhouseError as error:
        raise CommandError(error.text, Exit.USAGE if error.usage else Exit.FOUND) from None
    print(say(t(
        "{count} {count:file|files}, {size}, for Python {version}: {folder}",
        count=len(made.files), size=human_bytes(made.size_bytes), version=made.python, folder=str(made.folder),
    )))  # fmt: skip
    print(say(t("On the other machine: sh {script} [PYTHON]", script=f"{made.folder.name}/{SCRIPT}")))
    return Exit.OK
