"""A trainer that trains nothing and writes the events of one that does: started by path like the real one.

What it does is chosen by ``FAKE_TRAINER``: ``complete``, ``slow`` (until it is asked to stop), ``silent``, ``crash``.
"""

import os
import signal
import sys
import time
from pathlib import Path

# As the real one does: our own package first, nothing of the working directory.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from runner.events import EventWriter  # noqa: E402
from runner.rundir import RunDir  # noqa: E402

stopping: list[int] = []


def main() -> int:
    run, how = RunDir(sys.argv[1]), os.environ.get("FAKE_TRAINER", "complete")
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    print("fake trainer", how, "in", Path.cwd(), flush=True)
    if how == "crash":
        raise RuntimeError("no such tokenizer")
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0")
    first = 5 if "--resume" in sys.argv else 0
    writer.write("run-started", device="cpu", precision="fp32", steps_total=10, resumed_from_step=first, model="fake",
                 hash_seed=os.environ.get("PYTHONHASHSEED"))  # fmt: skip
    for step in range(first + 1, 11):
        if how == "silent":
            time.sleep(60)
        while how == "slow" and step == first + 4 and not stopping:
            time.sleep(0.02)
        if stopping:
            writer.write("checkpoint", step, path="checkpoints/step-00000003", bytes=1000, reason="signal")
            writer.write("run-finished", step, outcome="stopped", steps=step, exit_code=143)
            return 143
        writer.write("step", step, loss=2.0 / step, lr=1e-4, grad_norm=1.0, samples=8, tokens=80, padded_tokens=100,
                     seconds=0.01, split={"data": 0.002, "forward": 0.008})  # fmt: skip
    writer.write("evaluation", 10, accuracy=0.9, loss=0.2, samples=100, seconds=0.1, best=True)
    writer.write("run-finished", 10, outcome="completed", steps=10, exit_code=0, final_dir="final",
                 metrics={"accuracy": 0.9})  # fmt: skip
    return 0


sys.exit(main())
