"""A run's appetite against the card it will use."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Environment, Gpu, Gpus, Workload
from tests.checks.judged import findings, the

GIB = 1 << 30
ID = "run-needs-more-vram"


def gpus(*free_gib: float, total: float = 24, **fields: Any) -> Gpus:
    items = tuple(
        Gpu(index=index, name="NVIDIA GeForce RTX 4090", memory_total_bytes=int(total * GIB), memory_free_bytes=int(free * GIB), **fields)
        for index, free in enumerate(free_gib)
    )  # fmt: skip
    return Gpus(items=items)


def run(needed: float | None, low: float | None = None) -> Workload:
    return Workload(
        memory_needed_bytes=None if needed is None else int(needed * GIB),
        memory_needed_low_bytes=None if low is None else int(low * GIB),
    )


@pytest.mark.parametrize(
    ("cards", "workload", "level"),
    [
        pytest.param(gpus(23), run(20, 16), None, id="it fits"),
        pytest.param(gpus(23), run(None), None, id="nothing is known of the run"),
        pytest.param(gpus(10), run(20, 16), "warn", id="others hold what it needs"),
        pytest.param(
            gpus(23), run(30, 25), "warn", id="the expected peak does not fit, the low end nearly does"
        ),
        pytest.param(gpus(23), run(40, 27.5), "warn", id="the low end is just below 15 % over the card"),
        pytest.param(gpus(23), run(40, 28), "fail", id="even the low end is 15 % over the card"),
        pytest.param(gpus(23), run(40), "warn", id="without a low end nothing is held back"),
        pytest.param(gpus(23, 2), run(20, 16), None, id="the run takes the first card"),
        pytest.param(gpus(10, mig_enabled=True), run(40, 30), None, id="a card in instances is not judged"),
        pytest.param(Gpus(items=(Gpu(index=0),)), run(40, 30), None, id="a card whose memory is not known"),
    ],
)
def test_a_run_is_held_against_its_card(cards: Gpus, workload: Workload, level: str | None) -> None:
    found = [item.level for item in findings(gpus=cards, workload=workload) if item.id == ID]
    assert found == ([level] if level else [])


def test_the_card_is_the_one_that_cuda_shows() -> None:
    environment = Environment(variables={"CUDA_VISIBLE_DEVICES": "1"})
    found = the(ID, gpus=gpus(23, 2), workload=run(20, 16), environment=environment)
    assert found.subject == "GPU 1"
    assert "gpus.items[1].memory_free_bytes" in [row.fact for row in found.evidence]
