"""Checks on a run's appetite: does what it needs fit on the card, and in what is free of it now. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check
from doctor.checks.gpu_memory import gib
from doctor.model import Environment, Evidence, Finding, Gpus, Level, Reading, Workload, t
from doctor.visible_gpus import visible_cards

SURE = 1.15
"""The low end of the prediction must pass the whole card by this before a run is held back."""


@check("run-needs-more-vram")
def run_fits_the_card(gpus: Gpus, workload: Workload, environment: Reading[Environment]) -> Iterator[Finding]:
    """Does the run fit in the memory of the card that it will use?"""
    needed, low = workload.memory_needed_bytes, workload.memory_needed_low_bytes
    cards = visible_cards(gpus, environment.value)
    if needed is None or not cards:
        return
    gpu = cards[0]  # the run takes the first that CUDA shows it
    total = gpu.memory_total_bytes
    if total is None or gpu.mig_enabled:  # an instance's share is not the card's
        return
    free = gpu.memory_free_bytes
    if free is None and gpu.memory_used_bytes is not None:
        free = total - gpu.memory_used_bytes
    surely = low is not None and low > SURE * total
    if not surely and (free is None or needed <= free):
        return
    level: Level = "fail" if surely else "warn"
    path = f"gpus.items[{gpus.items.index(gpu)}]"
    yield Finding(
        id="run-needs-more-vram",
        level=level,
        subject=f"GPU {gpu.index}",
        title=t("this run needs about {needed} GiB on GPU {index}, which has {total} GiB: it will run out of memory", needed=gib(needed), index=gpu.index, total=gib(total))
        if surely
        else t("this run needs about {needed} GiB on GPU {index}, where {free} of {total} GiB are free", needed=gib(needed), index=gpu.index, free=gib(free), total=gib(total)),
        evidence=(
            Evidence(fact="workload.memory_needed_bytes", value=str(needed)),
            Evidence(fact=f"{path}.memory_total_bytes", value=str(total)),
            *([] if gpu.memory_free_bytes is None else [Evidence(fact=f"{path}.memory_free_bytes", value=str(free))]),
        ),
        advice=t("See what takes it and what to turn on: doctor plan PROFILE. Halving train.micro_batch_size keeps the numbers of the run."),
    )  # fmt: skip
