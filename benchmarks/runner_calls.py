"""A save killed by strace at each of its system calls, one after another: is there always a whole checkpoint?

    python -m benchmarks.runner calls

After each kill all that has a checkpoint's name must be as its manifest says, and the older or the newer one be there.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import time
from pathlib import Path

from runner.rundir import RunDir
from tests.runner.killing import fork_server
from tests.runner.killing_calls import can_trace, save_killed_at
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import make_run, train


def measure_calls(options: argparse.Namespace, work: Path) -> None:
    if not can_trace():
        raise SystemExit("strace is not here, or may not attach")
    stopped = make_run(work, ["train.keep_last=1"], "stopped")
    assert train(stopped, stop=StopAfter(18)) == 143
    server, begun = fork_server(), time.monotonic()
    for call in itertools.count(1):
        run = RunDir(shutil.copytree(stopped.path, work / "killed"))
        code = save_killed_at(server, run, call)
        shutil.rmtree(run.path)
        if code == 0:
            break
    print(f"killed at each of the {call - 1} system calls of a save in {time.monotonic() - begun:.0f} s: always a whole checkpoint")  # fmt: skip
