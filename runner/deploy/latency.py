"""How long one call takes, for torch and for each ONNX file, in turns so that a busy moment hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from runner.deploy.parity import made_up_batch
from runner.deploy.records import Latency
from runner.deploy.session import Batch
from runner.deploy.trained import Trained

BATCH_SIZES = (1, 32)
CALLS = 30
LIMIT_S = 20.0
"""For one batch size; a slow model is called less often, never under five times."""
Call = Callable[[Batch], object]


def measure(trained: Trained, engines: Mapping[str, Call], length: int) -> list[Latency]:
    """Return the latencies of every engine at batch 1 and 32, all tokens real."""
    return [found for size in BATCH_SIZES for found in _measure_one(trained, engines, size, length)]


def _measure_one(trained: Trained, engines: Mapping[str, Call], size: int, length: int) -> list[Latency]:
    batch = made_up_batch(trained, (size, length), seed=0)
    batch["attention_mask"] = batch["attention_mask"] * 0 + 1
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for call in engines.values():
        call(batch)  # the first call plans and allocates
    begun = time.perf_counter()
    for turn in range(CALLS):
        if turn >= 5 and time.perf_counter() - begun > LIMIT_S:
            break
        for name, call in engines.items():
            start = time.perf_counter()
            call(batch)
            seconds[name].append(time.perf_counter() - start)
    return [
        Latency(
            engine=name, batch_size=size, length=length, p50_ms=_share(took, 0.5), p95_ms=_share(took, 0.95), calls=len(took)
        )
        for name, took in seconds.items()
    ]  # fmt: skip


def _share(seconds: list[float], share: float) -> float:
    ordered = sorted(seconds)
    return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)
