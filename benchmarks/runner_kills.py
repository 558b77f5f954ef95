"""Runs killed with SIGKILL at random moments and continued until they are done: are the weights those of a run never killed?

    python -m benchmarks.runner kills --count 100

Each chain is one run of a tiny model from a configuration. A moment is drawn evenly from the time that the run takes when
nobody kills it, and after the kill it is continued; that is killed too with one chance in three, and so on. The settings
go around: dropout with accumulation, loader workers, bf16, class weights with early stopping and the best weights put back.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from runner.checkpoint import checkpoint_folders
from runner.durable import what_is_wrong
from runner.rundir import RunDir
from tests.runner.killing import fork_server, start
from tests.runner.tiny import final_hash, last_losses, make_run

COMMON = ["train.epochs=3", "train.checkpoint_every=3", "train.evaluate_every=7"]
BEST = ["train.restore_best=true", "train.patience=6", "train.evaluate_every=3"]
SETTINGS = {
    "accumulation, dropout": [],
    "two loader workers": ["train.workers=2"],
    "bf16": ["train.precision=bf16"],
    "class weights, early stopping": ["train.class_weights=balanced", "train.label_smoothing=0.1", *BEST],
}
AGAIN = 1 / 3
"""The chance that a continued run is killed as well."""


class Whole:
    """A setting's run that nobody killed."""

    def __init__(self, server: Any, work: Path, name: str) -> None:
        self.settings = [*COMMON, f"data.train={work / 'rows.csv'}", *SETTINGS[name]]
        self.run = make_run(work, self.settings, f"whole {name}")
        begun = time.monotonic()
        process = start(server, self.run)
        process.join()
        assert process.exitcode == 0, f"{self.run.path} failed"
        self.seconds = time.monotonic() - begun


def place_of_death(run: RunDir) -> str:
    """Return what a run was doing when it was killed, by what lies there."""
    if not run.data.is_dir():
        return "preparing the data"
    if list(run.checkpoints.glob(".making-*")) or list(run.checkpoints.glob(".discarded-*")):
        return "in a save"
    if (run.path / "final.making").exists() or (run.path / ".discarded-final").exists():
        return "writing the model"
    if run.final.is_dir():
        return "after the model was written"
    return "between saves" if checkpoint_folders(run) else "before the first checkpoint"


def chain(server: Any, whole: Whole, run: RunDir, draw: random.Random, places: Counter[str]) -> int:
    """Kill and continue one run until it is done; return how often it was killed."""
    kills = 0
    while True:
        process = start(server, run, resume=kills > 0)
        is_to_die = kills == 0 or draw.random() < AGAIN
        process.join(draw.uniform(0, whole.seconds) if is_to_die else None)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        if process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0, f"{run.path}: exit code {process.exitcode}"
            return kills
        kills += 1
        places[place_of_death(run)] += 1
        damaged = [folder for _, folder in checkpoint_folders(run) if what_is_wrong(folder)]
        assert not damaged, f"killed, and {damaged} have their names without being whole"


def measure_kills(options: argparse.Namespace, work: Path) -> None:
    server, draw = fork_server(), random.Random(options.seed)
    wholes = [Whole(server, work, name) for name in SETTINGS]
    begun, places = time.monotonic(), Counter[str]()
    chains = kills = equal = 0
    for number in itertools.count():
        if chains == options.count:
            break
        whole = wholes[number % len(wholes)]
        run = make_run(work, whole.settings, f"chain-{number:04d}")
        died = chain(server, whole, run, draw, places)
        if not died:
            continue  # it was done before its moment came
        chains, kills = chains + 1, kills + died
        same = final_hash(run) == final_hash(whole.run) and last_losses(run) == last_losses(whole.run)
        equal += same
        if same:
            shutil.rmtree(run.path)
        else:
            print(f"{run.path}: not the weights and losses of {whole.run.path}", flush=True)
    shown = ", ".join(f"{place} {count}" for place, count in places.most_common())
    print(
        f"{equal} of {chains} runs killed {kills} times end with the weights and losses of one never killed, in "
        f"{time.monotonic() - begun:.0f} s; killed {shown}"
    )
