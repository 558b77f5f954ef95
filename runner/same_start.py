"""Whether all processes of a run begin alike: with the same settings, code and libraries.

Each makes the updates by itself: another rate on one machine would take its weights away from the others' without a word, and
another cut into micro-batches would leave the ranks waiting for each other.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import torch
import transformers

from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.text import t
from runner.trackers import flat_config

PER_MACHINE = (
    "data.", "run.", "model.path", "model.tokenizer", "model.max_memory", "parallel.accelerate_config", "parallel.deepspeed_config",
    "parallel.timeout_s", "train.pin_memory", "train.trackers", "train.workers", "settings.pin_memory", "settings.threads",
    "settings.workers",
)  # fmt: skip
"""What machines may have each for themselves. The data are compared as they were read, the seeds as they were derived."""
MOST_SHOWN = 4


def refuse_different_starts(plan: Plan, ranks: Ranks) -> None:
    """Compare what every rank begins with; all of them call this.

    Raises:
        InputError: on all ranks alike, where one of them has something else than rank 0.
    """
    if ranks.size == 1:
        return
    # Whoever starts them counts on as many on each machine; SLURM says itself how many it gave each.
    each = {"--nproc": ranks.place.local_size} if ranks.place.has_parent else {}
    first, *others = ranks.gathered({**begins_with(plan), **each})
    for rank, other in enumerate(others, start=1):
        if shown := differences(first, other):
            raise InputError(t("rank {rank} on {host} does not begin with what rank 0 has ({differences}): start all machines with the same "
                               "profile, --set and packages", rank=rank, host=ranks.hosts[rank], differences="; ".join(shown)))  # fmt: skip


def begins_with(plan: Plan) -> dict[str, Any]:
    """Return what has to be the same on all ranks, by the name that a person knows it by."""
    told = flat_config({
        **msgspec.to_builtins(plan.profile), "settings": msgspec.to_builtins(plan.settings), "seeds": plan.seeds,
    })  # fmt: skip
    return {
        "torch": str(torch.__version__),
        "transformers": str(transformers.__version__),
        "code/runner": code_digest(Path(__file__).parent)[:12],
        **{name: value for name, value in told.items() if not name.startswith(PER_MACHINE)},
    }


def differences(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return ``name: rank 0's / the other's`` of what differs; no more than a few."""
    names = [*first, *(name for name in other if name not in first)]
    found = [name for name in names if first.get(name) != other.get(name)]
    return [f"{name}: {first.get(name, '-')} / {other.get(name, '-')}" for name in found[:MOST_SHOWN]]


def code_digest(folder: Path) -> str:
    """Return the SHA-256 of the sources under ``folder``, with their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}|".encode() + path.read_bytes())
    return digest.hexdigest()
