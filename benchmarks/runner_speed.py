"""Samples a second beside transformers' Trainer and a lean loop: ``python -m benchmarks.runner speed --data DIR``.

Every variant is a fresh process with the same reviews and the same pretrained weights. They take turns, one update each,
windows in the order of their length: a busy moment of the machine hits all alike, and the k-th updates of two variants are
of like size. The ratio of two variants is that of their summed seconds; its interval is a bootstrap over the turns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import verdict
from benchmarks.runner import MINILM, planned_run, reviews, write_rows

BATCH, MAX_LENGTH = 16, 512
MICRO_BATCH_TOKENS = BATCH * MAX_LENGTH // 2
SETTINGS = f"""\
epochs = 1
batch_size = {BATCH}
micro_batch_tokens = {MICRO_BATCH_TOKENS}
max_length = {MAX_LENGTH}
lr = 5e-5
warmup = 0
schedule = "linear"
evaluate_every = "end"
checkpoint_every = "end"
"""
NAMES = ("trainer-max", "trainer-group", "trainer-group-small", "ours", "ours-bf16", "lean")
RESAMPLED = 4000
FLAGS = ("avx512_bf16", "amx_bf16")


@dataclass
class Variant:
    """A child and its turns."""

    name: str
    process: subprocess.Popen[str]
    windows: int = 0
    turns: list[dict[str, float]] = field(default_factory=list)
    base_bytes: int = 0

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None, "it is a pipe"
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def take_turn(self) -> None:
        assert self.process.stdin is not None, "it is a pipe"
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        self.turns.append(self.read())

    def sums(self, name: str) -> float:
        return sum(turn[name] for turn in self.turns)


def start(name: str, work: Path, rows: Path) -> Variant:
    precision = "bf16" if name == "ours-bf16" else "fp32"
    run = planned_run(
        work, name, MINILM, f'train = "{rows}"\neval_share = 0.01', SETTINGS + f'precision = "{precision}"\n'
    )
    from runner.plan import decode_plan

    environ = os.environ | decode_plan(run.plan.read_bytes()).environment | {"DOCTOR_CACHE": "off"}
    with open(work / f"{name}.log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.runner_speed_child", name, str(run.path)], env=environ, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    return Variant(name, process)


def ratio(slow: Variant, fast: Variant, what: str = "wall_s") -> tuple[float, float, float]:
    """Return how many times faster ``fast`` is, with its 95 % bootstrap interval over the turns."""
    pairs = [(a[what], b[what]) for a, b in zip(slow.turns, fast.turns, strict=False)]
    draw = random.Random(1)
    found = []
    for _ in range(RESAMPLED):
        again = draw.choices(pairs, k=len(pairs))
        found.append(sum(a for a, _ in again) / sum(b for _, b in again))
    found.sort()
    whole = sum(a for a, _ in pairs) / sum(b for _, b in pairs)
    return whole, found[int(0.025 * RESAMPLED)], found[int(0.975 * RESAMPLED)]


def line(variant: Variant) -> str:
    wall, cpu, samples = (variant.sums(name) for name in ("wall_s", "cpu_s", "samples"))
    peak = max(turn["peak_bytes"] for turn in variant.turns)
    return (
        f"{variant.name:20} {samples / wall:8.2f} {samples / cpu:8.2f} {variant.sums('tokens') / wall:8.0f} "
        f"{1 - variant.sums('tokens') / variant.sums('padded'):7.1%} {max(turn['largest'] for turn in variant.turns):8.0f} "
        f"{peak / 2**20:8.0f} {(peak - variant.base_bytes) / 2**20:8.0f}"
    )


def say_ratios(found: dict[str, Variant]) -> None:
    for what in ("wall_s", "cpu_s"):
        print(f"ratios by {'wall' if what == 'wall_s' else 'CPU'} seconds (95 % bootstrap over turns)")
        for slow, fast in (("trainer-max", "ours"), ("trainer-group", "ours"), ("trainer-group-small", "ours"), ("lean", "ours"), ("trainer-max", "ours-bf16")):  # fmt: skip
            if slow in found and fast in found:
                whole, low, high = ratio(found[slow], found[fast], what)
                print(f"  {fast} against {slow}: x{whole:.3f} ({low:.3f} to {high:.3f})")


def say_verdicts(found: dict[str, Variant]) -> None:
    def asked(slow: str, fast: str, aim: float, lower: bool) -> None:
        if slow in found and fast in found:
            whole, low, _ = ratio(found[slow], found[fast])
            print(verdict(f"{fast} against {slow}{', lower bound' if lower else ''}", low if lower else whole, aim, True))  # fmt: skip

    asked("trainer-max", "ours", 2.5, False)
    asked("trainer-group", "ours", 0.97, True)
    asked("trainer-group-small", "ours", 1.1, False)
    asked("lean", "ours", 0.97, True)
    flags = Path("/proc/cpuinfo").read_text()
    native = [flag for flag in FLAGS if flag in flags]
    print(f"bf16 in hardware here: {', '.join(native) or 'no'}")
    if native:
        asked("trainer-max", "ours-bf16", 4.0, False)
    if "trainer-group" in found and "ours" in found:
        largest = {name: max(turn["largest"] for turn in found[name].turns) for name in ("trainer-group", "ours")}  # fmt: skip
        print(verdict("largest micro-batch in padded tokens, by group_by_length's", largest["ours"] / largest["trainer-group"], 0.6, False))  # fmt: skip


def measure_speed(options: argparse.Namespace, work: Path) -> None:
    names = options.variants.split(",") if options.variants else list(NAMES)
    wanted = options.reviews
    rows = write_rows(work / "train.csv", reviews(options.data, "imdb_train"), round(wanted / 0.99) + 1)
    begun, load = time.monotonic(), os.getloadavg()[0]
    found: dict[str, Variant] = {}
    for name in names:  # one after another: loading is not measured
        found[name] = start(name, work, rows)
        first = found[name].read()
        found[name].windows, found[name].base_bytes = int(first["windows"]), int(first["peak_bytes"])
    turns = min(variant.windows for variant in found.values())
    for number in range(turns):
        for variant in list(found.values())[:: 1 if number % 2 == 0 else -1]:
            variant.take_turn()
    for variant in found.values():
        variant.process.kill()
        variant.process.wait()
    print(f"{wanted} reviews, {turns} updates of {BATCH}; load {load:.1f} to {os.getloadavg()[0]:.1f}; {time.monotonic() - begun:.0f} s")  # fmt: skip
    print(f"{'':20} {'smp/s':>8} {'smp/cpus':>8} {'tok/s':>8} {'padded':>7} {'largest':>8} {'peak MB':>8} {'grown':>8}")  # fmt: skip
    for variant in found.values():
        print(line(variant))
    say_ratios(found)
    say_verdicts(found)
    losses = {name: [turn["loss"] for turn in found[name].turns] for name in ("ours", "ours-bf16", "lean") if name in found}  # fmt: skip
    for name, values in losses.items():
        print(f"loss of {name}: {values[0]:.4f} first, {sum(values[-5:]) / len(values[-5:]):.4f} mean of the last 5")  # fmt: skip
