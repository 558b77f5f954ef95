"""What saving, events and sampling cost a run, in units of its own steps.

*Save stall*: the time between two step events around the beginning of a checkpoint, less that of an ordinary step, and
what the steps lose while the checkpoint is written beside them. *Events*: writing one step event, timed, against a step.
*Sampling*: CPU seconds of the sampler (its helpers included) against the trainer's, in one run of ``doctor run``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.runner import MINILM, events, planned_run, reviews, start, write_rows
from runner.events import EventWriter
from runner.rundir import RunDir

SETTINGS = """\
steps = 24
batch_size = 8
max_length = 128
lr = 1e-4
precision = "fp32"
bucketing = false
evaluate_every = "end"
checkpoint_every = 6
"""


def stalls(run: RunDir) -> tuple[list[float], float, float]:
    """Return for each save how much longer its step took than the median, that median, and a save's seconds."""
    steps = events(run, "step")
    gaps = {step.step or 0: step.t - before.t for before, step in itertools.pairwise(steps)}
    after = {number + 1 for number in (6, 12, 18)}
    plain = statistics.median(gap for number, gap in gaps.items() if number not in after)
    saves = [event.data["seconds"] for event in events(run, "checkpoint")]
    return [gaps[number] - plain for number in sorted(after)], plain, statistics.median(saves)


def event_cost(folder: Path, data: dict[str, object], count: int = 2000) -> float:
    """Return the CPU seconds of writing one step event."""
    writer = EventWriter(folder / "cost.jsonl", "trainer-0")
    begun = time.process_time()
    for number in range(count):
        writer.write("step", number, **data)
    spent = time.process_time() - begun
    writer.close()
    return spent / count


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process and of its children that ended (/proc/PID/stat, fields 14-17)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def sampled_run(work: Path, profile: Path) -> tuple[float, float]:
    """Run the profile with ``doctor run`` and return (trainer's, sampler's) CPU seconds as last seen."""
    run = RunDir(work / "sampled")
    argv = [sys.executable, "-m", "doctor", "run", str(profile), "--run-dir", str(run.path), "--anyway"]
    with open(work / "sampled.log", "wb") as log:
        child = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    trainer = sampler = 0.0
    while child.poll() is None:
        for path, is_trainer in ((run.trainer_pid, True), (run.sampler_pid, False)):
            try:
                spent = cpu_seconds(int(path.read_text().split()[0]))
            except (OSError, ValueError, IndexError):
                continue
            trainer, sampler = (spent, sampler) if is_trainer else (trainer, spent)
        time.sleep(0.1)
    return trainer, sampler


def measure_cost(options: argparse.Namespace, work: Path) -> None:
    rows = write_rows(work / "train.csv", reviews(options.data, "imdb_train"), 240)
    run = planned_run(work, "saves", MINILM, f'train = "{rows}"\neval_limit = 16', SETTINGS)
    assert start(run).wait() == 0
    found, plain, save_s = stalls(run)
    shown = ", ".join(f"{one / plain:.2f}" for one in found)
    print(f"a step {plain:.3f} s, a save {save_s:.2f} s beside it; stall in steps: {shown}", flush=True)
    cost = event_cost(work, json.loads(json.dumps(events(run, "step")[0].data)))
    print(f"a step event {cost * 1e6:.0f} us of CPU: {cost / plain:.3%} of a step", flush=True)
    trainer, sampler = sampled_run(work, work / "saves.toml")
    print(
        f"sampler {sampler:.1f} CPU s beside the trainer's {trainer:.1f}: {sampler / trainer:.2%}", flush=True
    )
