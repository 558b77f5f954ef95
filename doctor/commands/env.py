"""``doctor env list``: every Python environment found here, one line and one verdict each; ``create`` makes one."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from doctor.commands import Exit, env_create
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.environments import EnvironmentList


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = verbs.add_parser("list", help=say("every environment found here, one line each"))
    listing.add_argument("--json", action="store_true", help=say("as JSON"))
    env_create.configure(verbs.add_parser("create", help=say("a fresh environment that fits this machine")))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service

    if namespace.action == "create":
        return env_create.run(namespace)
    found = service.list_environments()
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode("utf-8"))
        return Exit.OK
    print("\n".join(lines_of(found)))
    return Exit.OK


def lines_of(found: EnvironmentList) -> list[str]:
    from doctor.render.environments import environment_lines
    from doctor.render.layout import wants_colour

    lines = environment_lines(found, wants_colour(sys.stdout))
    if found.machine_findings:
        text = t(
            "{count} {count:finding concerns|findings concern} the machine and every environment on it: `doctor check`",
            count=found.machine_findings,
        )
        lines += ["", say(text)]
    if not found.complete:
        lines += [
            "",
            say(
                "The search did not end: a folder hangs, or there are too many. There may be more environments."
            ),
        ]
    return lines
