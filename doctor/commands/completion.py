"""``doctor completion SHELL``: a completion script, made by shtab from the parser."""

from __future__ import annotations

import argparse

from doctor.commands import CommandError, Exit
from doctor.commands.parser import build_parser
from doctor.language import current_language, say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help=say("the shell to complete for"))


def run(namespace: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        text = say("completion needs shtab: python -m pip install shtab")
        raise CommandError(text, Exit.USAGE) from None
    print(shtab.complete(build_parser(None, current_language()), shell=namespace.shell))
    return Exit.OK
