"""``python -m tests.nvml --scenario NAME -- COMMAND ...``: runs any command on the stand-in NVML."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.nvml.build import SCENARIOS, environment, scenario_names


def describe(name: str) -> str:
    """Return the first comment line of a scenario file."""
    first = (SCENARIOS / f"{name}.conf").read_text("utf-8").partition("\n")[0]
    return first.lstrip("# ")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nvml", description=__doc__)
    parser.add_argument("--scenario", metavar="NAME|FILE", help="one of --list, or a file of your own")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    arguments = parser.parse_args(argv)
    if arguments.list:
        print("\n".join(f"{name:14} {describe(name)}" for name in scenario_names()))
        return 0
    command = [word for index, word in enumerate(arguments.command) if index or word != "--"]
    if not arguments.scenario or not command:
        parser.error("give --scenario NAME and, after --, the command to run on it")
    own = Path(arguments.scenario)
    try:
        variables = environment(own if own.is_file() else arguments.scenario)
        os.execvpe(command[0], command, variables)
    except OSError as error:
        print(f"python -m tests.nvml: {error}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main())
