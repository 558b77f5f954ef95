"""What watching costs: the sampler's share of one core, and how much a small CPU training slows down beside it.

``python benchmarks/watch.py [--rounds N] [--seconds S] [--workers W]``. The training is a loop of matrix products fed by
loader workers; it counts its own steps. Rounds with and without the sampler alternate; the slowdown is the mean of the
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
from pathlib import Path

TRAINING = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, index): return torch.full((256,), float(index % 7))

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    seconds, workers = float(sys.argv[1]), int(sys.argv[2])
    steps, begun = 0, None
    for rows in DataLoader(Rows(), batch_size=64, num_workers=workers):
        begun = begun or time.perf_counter()
        loss = model(rows).square().mean(); loss.backward(); optimizer.step(); optimizer.zero_grad()
        steps += 1
        if time.perf_counter() - begun > seconds: break
    print(steps / (time.perf_counter() - begun), flush=True)
    os._exit(0)
"""
# Two-sided 97.5 % quantiles of Student's t for 1, 2, 3 ... degrees of freedom.
T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)


def one_round(seconds: float, workers: int, watched: bool, folder: Path) -> tuple[float, float, Counter[str]]:
    """Train for ``seconds``; return (steps a second, the sampler's share of one core, events by kind)."""
    script = folder / "training.py"
    script.write_text(TRAINING)
    training = subprocess.Popen(
        [sys.executable, str(script), str(seconds), str(workers)], stdout=subprocess.PIPE, text=True
    )
    run = folder / f"run-{time.time_ns()}"
    (run / "events").mkdir(parents=True)
    share, kinds = 0.0, Counter[str]()
    if watched:
        begun = time.monotonic()
        argv = [sys.executable, "-m", "doctor.sampler", str(run), "--pid", str(training.pid)]
        sampler = subprocess.Popen(argv)
        out, _ = training.communicate()
        sampler.send_signal(signal.SIGTERM)
        # wait4 counts the sampler and every py-spy and NVML child that it has waited for.
        _, _, usage = os.wait4(sampler.pid, 0)
        sampler.returncode = 0
        share = (usage.ru_utime + usage.ru_stime) / (time.monotonic() - begun)
        lines = (run / "events" / "sampler.jsonl").read_text().splitlines()
        kinds = Counter(json.loads(line)["kind"] for line in lines)
    else:
        out, _ = training.communicate()
    return float(out), share, kinds


def interval(values: list[float]) -> tuple[float, float]:
    """Return mean and half width of the 95 % interval of the mean."""
    if len(values) < 2:
        return values[0], math.inf
    half = T[min(len(values) - 2, len(T) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), half


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    slowdowns, shares = [], []
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for index in range(options.rounds):
            order = (False, True) if index % 2 == 0 else (True, False)  # neither is always first
            rates = {}
            for watched in order:
                rate, share, counted = one_round(options.seconds, options.workers, watched, Path(name))
                rates[watched] = rate
                kinds += counted
                if watched:
                    shares.append(share)
            slowdowns.append(1 - rates[True] / rates[False])
    mean, half = interval(slowdowns)
    print(f"sampler with stacks: median {100 * statistics.median(shares):.1f} % of one core (bound: 6 %)")
    print(
        f"slowdown of the training: {100 * mean:.1f} % +- {100 * half:.1f} % (95 %, {options.rounds} pairs)"
    )
    print(f"events in the watched rounds: {dict(kinds)}")
    return 0 if statistics.median(shares) < 0.06 and kinds["sample-stacks"] else 1


if __name__ == "__main__":
    sys.exit(main())
