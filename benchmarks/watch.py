"""What watching costs: the sampler's share of one core and of what the training gets, and how much a small CPU training slows down.

``python benchmarks/watch.py [--rounds N] [--seconds S] [--workers W]``. The training is a loop of matrix products fed by
loader workers; it counts its own steps and tells of every fiftieth, as a run of ours would. Rounds with and without the sampler alternate; the slowdown is the mean of the
paired ratios with its 95 % interval (t distribution), so a drift of the machine cancels.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doctor.bench_stats import T95

TRAINING = """
import sys, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset
from runner.events import EventWriter

class Rows(Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, index): return torch.full((256,), float(index % 7))

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    seconds, workers = float(sys.argv[1]), int(sys.argv[2])
    events = EventWriter(Path(sys.argv[3]) / "events" / "trainer-0.jsonl", "trainer-0")
    events.write("run-started", device="cpu")
    steps, begun = 0, None
    loader = iter(DataLoader(Rows(), batch_size=64, num_workers=workers))
    for rows in loader:
        begun = begun or time.perf_counter()
        loss = model(rows).square().mean(); loss.backward(); optimizer.step(); optimizer.zero_grad()
        steps += 1
        if steps % 50 == 0: events.write("step", steps, loss=1.0)
        if time.perf_counter() - begun > seconds: break
    print(steps / (time.perf_counter() - begun), flush=True)
    events.write("run-finished", outcome="completed")
    del loader  # ends the workers, so that what they used is counted
"""


@dataclass(frozen=True)
class Round:
    """One training; the last three are of the sampler beside it."""

    steps_per_s: float
    share_of_core: float = 0.0
    share_of_run: float = 0.0
    """CPU seconds against those of the training and its workers."""
    events: Counter[str] = field(default_factory=Counter)


def one_round(seconds: float, workers: int, watched: bool, folder: Path) -> Round:
    """Train for ``seconds``, watched or not."""
    script = folder / "training.py"
    script.write_text(TRAINING)
    run = folder / f"run-{time.time_ns()}"
    (run / "events").mkdir(parents=True)
    argv = [sys.executable, str(script), str(seconds), str(workers), str(run)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    begun = time.monotonic()
    training = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment)
    sampler = None
    if watched:
        sampler = subprocess.Popen(
            [sys.executable, "-m", "doctor.sampler", str(run), "--pid", str(training.pid)]
        )
    out = training.stdout.read() if training.stdout else ""
    trained_s = cpu_seconds_of(training)
    if sampler is None:
        return Round(float(out))
    sampler.send_signal(signal.SIGTERM)
    watched_s = cpu_seconds_of(sampler)
    lines = (run / "events" / "sampler.jsonl").read_text().splitlines()
    kinds = Counter(json.loads(line)["kind"] for line in lines)
    return Round(float(out), watched_s / (time.monotonic() - begun), watched_s / trained_s, kinds)


def cpu_seconds_of(process: subprocess.Popen[Any]) -> float:
    """Wait for a process; return what it and every child that it has waited for used, workers and py-spy among them."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def interval(values: list[float]) -> tuple[float, float]:
    """Return mean and half width of the 95 % interval of the mean."""
    if len(values) <= min(T95):
        return statistics.mean(values), math.inf
    half = T95.get(len(values) - 1, T95[max(T95)]) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), half


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    slowdowns, rounds = [], []
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for index in range(options.rounds):
            order = (False, True) if index % 2 == 0 else (True, False)  # neither is always first
            pair = {
                watched: one_round(options.seconds, options.workers, watched, Path(name)) for watched in order
            }
            rounds.append(pair[True])
            kinds += pair[True].events
            slowdowns.append(1 - pair[True].steps_per_s / pair[False].steps_per_s)
    mean, half = interval(slowdowns)
    share = statistics.median(one.share_of_core for one in rounds)
    of_run = statistics.median(one.share_of_run for one in rounds)
    print(
        f"sampler with stacks: median {100 * share:.1f} % of one core (bound: 6 %), {100 * of_run:.1f} % of what the training got"
    )
    print(
        f"slowdown of the training: {100 * mean:.1f} % +- {100 * half:.1f} % (95 %, {options.rounds} pairs)"
    )
    print(f"events in the watched rounds: {dict(kinds)}")
    return 0 if share < 0.06 and kinds["sample-stacks"] else 1


if __name__ == "__main__":
    sys.exit(main())
