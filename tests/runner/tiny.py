"""A run small enough for a test: 200 made-up texts, a two-layer BERT of 32 units, seconds from start to
end."""

from __future__ import annotations

import csv
import hashlib
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import runner
from runner.events import RunEvent, read_events
from runner.plan import MachineFacts, encode_plan, make_plan
from runner.profile import load_profile
from runner.rundir import RunDir
from runner.session import run_session
from runner.signals import StopRequest

ONE_CORE = MachineFacts(device="cpu", cpu_cores_usable=1.0, python="3.11", torch_version="2.13.0+cpu")

PROFILE = """\
[run]
name = "tiny"
seed = 7

[model]
config = { model_type = "bert", hidden_size = 32, num_hidden_layers = 2, num_attention_heads = 2, \
intermediate_size = 64, max_position_embeddings = 64 }
vocabulary_size = 200

[data]
train = "rows.csv"
eval_share = 0.2

[train]
epochs = 2
batch_size = 8
micro_batch_size = 4
eval_batch_size = 16
max_length = 32
lr = 1e-2
warmup = 3
checkpoint_every = 5
evaluate_every = 10
precision = "fp32"
"""

GOOD = ["bright", "lovely", "warm", "fresh", "kind", "quick", "tasty"]
BAD = ["cold", "dull", "late", "stale", "rude", "slow", "salty"]
PLAIN = [
    "the",
    "soup",
    "was",
    "and",
    "table",
    "we",
    "waited",
    "our",
    "order",
    "came",
    "with",
    "a",
    "side",
    "of",
    "rice",
]


def write_rows(path: Path, rows: int = 200, seed: int = 1) -> None:
    """Write texts of 3 to 25 words whose class shows in one or two of them; no two are equal."""
    draw = random.Random(seed)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(rows):
            label = number % 2
            words = draw.choices(PLAIN, k=draw.randint(2, 23)) + draw.choices(GOOD if label else BAD, k=2)
            draw.shuffle(words)
            writer.writerow([" ".join(words) + f" {number}", label])


def make_run(
    folder: Path,
    overrides: Sequence[str] = (),
    name: str = "run",
    rows: int = 200,
    machine: MachineFacts = ONE_CORE,
) -> RunDir:
    """Write profile and data into ``folder`` and a planned run directory beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.toml").write_text(PROFILE)
    if not (folder / "rows.csv").exists():
        write_rows(folder / "rows.csv", rows)
    plan = make_plan(load_profile(folder / "tiny.toml", overrides), machine, "2026-11-30T00:00:00Z")
    run = RunDir(folder / name)
    run.make()
    run.plan.write_bytes(encode_plan(plan))
    return run


def train(
    run: RunDir, resume: bool = False, stop: StopRequest | None = None, approximate: bool = False
) -> int:
    """Train in this process and return the exit code."""
    return run_session(str(run.path), resume, StopRequest() if stop is None else stop, approximate)


def copy_code(run: RunDir) -> Path:
    """Copy the runner alone into the run directory, as a launcher does; return the script to start."""
    package = Path(runner.__file__).parent
    shutil.copytree(package, run.code / "runner", ignore=shutil.ignore_patterns("__pycache__"))
    return run.code / "runner" / "__main__.py"


def events(run: RunDir, kind: str) -> list[RunEvent]:
    return [event for event, _ in read_events(run.events / "trainer-0.jsonl") if event.kind == kind]


def final_hash(run: RunDir) -> str:
    """Return the hash of the finished weights."""
    return hashlib.sha256((run.final / "model.safetensors").read_bytes()).hexdigest()


def last_losses(run: RunDir) -> dict[int, float]:
    """Return the loss of every step, as the newest event of that step has it."""
    return {event.step or 0: event.data["loss"] for event in events(run, "step")}


def outcome(run: RunDir) -> dict[str, object]:
    return events(run, "run-finished")[-1].data
