"""Reading a torch build from its files against importing it: ``python -m benchmarks.torch_files [--python PATH]``.

Aim: architectures, CUDA, cuDNN, NCCL and C++ ABI of a CUDA build in under 0.3 s, warm.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from benchmarks.measure import Command, measure, table, verdict
from doctor.probes import Context
from doctor.probes.torch import probe


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", default=sys.executable, help="an interpreter with torch (best: a CUDA build)"
    )
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    taken = []
    for _ in range(arguments.runs + 1):
        context = Context(python=arguments.python)
        _ = context.target
        begun = time.perf_counter()
        reading = probe(context)
        taken.append(time.perf_counter() - begun)
    print(reading.value)
    found = measure([Command("import torch", [arguments.python, "-c", "import torch"])], arguments.runs)
    print(table(found))
    print(verdict("seconds to read torch's files", statistics.median(taken[1:]), 0.3, at_least=False))


if __name__ == "__main__":
    main()
