"""``doctor --help`` against an interpreter that does nothing: ``python -m benchmarks.help``. Aim: under four
times."""

from __future__ import annotations

import argparse
import sys

from benchmarks.measure import Command, measure, table, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=21)
    runs = parser.parse_args().runs
    nothing = Command("python -c pass", [sys.executable, "-c", "pass"])
    script = Command(
        "doctor --help", [sys.executable, "-c", "from doctor.commands import main; main(['--help'])"]
    )
    found = measure([nothing, script], runs)
    print(table(found))
    ratio = found[script.name].wall / found[nothing.name].wall
    print(verdict("doctor --help / python -c pass", ratio, 4, at_least=False))


if __name__ == "__main__":
    main()
