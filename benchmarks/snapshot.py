"""``doctor snapshot export`` against ``pip inspect`` in the same venv, in CPU seconds: ``python -m benchmarks.snapshot [ROUNDS]``."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

AIM = 1 / 3
EXPORT = [sys.executable, "-m", "doctor", "snapshot", "export", "-o", "-", "--no-patch"]
INSPECT = [sys.executable, "-m", "pip", "inspect", "--local"]


def cpu_seconds_of(words: list[str]) -> float:
    """Run a command to its end and return what it and its children took of the cores. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the medians and the ratio of each pair; status 1 above the aim."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as empty:  # in no git working tree
        os.chdir(empty)
        pairs = [(cpu_seconds_of(EXPORT), cpu_seconds_of(INSPECT)) for _ in range(rounds)]
        os.chdir("/")
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"export {ours:.2f} s, pip inspect {theirs:.2f} s of CPU (medians of {rounds}), median of the pairs' ratios {ratio:.3f}, aim {AIM:.3f}"
    )
    return 0 if ratio <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
