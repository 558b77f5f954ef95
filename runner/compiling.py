"""``train.compile = "auto"``: whether compiling pays, measured before the first step and written into the run.

Compiled kernels add in another order, so a run that is continued must do as it began: what was decided lies in
``RUN/compile.json``. Whether it pays is decided by time, so another run of the same plan may decide otherwise.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import msgspec
import torch

from runner.durable import write_durably
from runner.rehearsal import batches_of, leaving_no_trace, rehearse
from runner.text import Text, t
from runner.workbench import Batch, Workbench

LEAST_RUN_S = 300.0
"""A shorter run cannot earn a compilation back: it takes half a minute to two minutes."""
LEAST_GAIN = 0.05
SHAPES = (0.1, 0.5, 0.9)
"""Micro-batches of these quantiles of the padded length are timed."""
PASSES = 3
FILE = "compile.json"


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """``compile.json``"""

    compiled: bool
    why: Text
    compile_s: float = 0.0
    ratio: float = 0.0
    """Compiled seconds a pass by eager ones."""


def settle_compiling(bench: Workbench) -> None:
    """Where the plan leaves it open, decide whether the model is compiled, and go on so."""
    if bench.settings.compile != "auto":
        return
    path = bench.run.path / FILE
    if path.is_file():
        if msgspec.json.decode(path.read_bytes(), type=Decided).compiled:
            bench.engine.model = torch.compile(bench.engine.placed.model, dynamic=True)
        return
    decided = _decide(bench)
    write_durably(path, msgspec.json.encode(decided))
    bench.journal.note("info", decided.why)


def _decide(bench: Workbench) -> Decided:
    if bench.state.windows_done:
        return Decided(compiled=False, why=t("compile: this run began without and goes on so"))
    if bench.engine.placed.processes > 1:
        return Decided(compiled=False, why=t("compile: not tried, several processes train together"))
    tried = _batches(bench)
    with leaving_no_trace(bench):
        eager_s = _timed(bench, tried)
        expected_s = eager_s / len(tried) * bench.total * bench.train.batch_size / _samples_each(tried)
        if expected_s < LEAST_RUN_S:
            return Decided(compiled=False, why=t("compile: not tried, the whole run takes about {seconds} s and would not earn it back", seconds=round(expected_s)))  # fmt: skip
        return _tried(bench, tried, eager_s, expected_s)


def _tried(bench: Workbench, tried: list[Batch], eager_s: float, expected_s: float) -> Decided:
    eager = bench.engine.model
    begun = time.perf_counter()
    try:
        bench.engine.model = torch.compile(bench.engine.placed.model, dynamic=True)
        for batch in tried:
            rehearse(bench, batch)
        compile_s = time.perf_counter() - begun
        ratio = _timed(bench, tried) / eager_s
    except Exception as error:  # a compiler, a kernel, a model it cannot trace: the run goes on without
        _go_back(bench, eager)
        return Decided(compiled=False, why=t("compile: given up ({why}); the run goes on without", why=f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"))  # fmt: skip
    figures: dict[str, Any] = {"ratio": f"{1 / ratio:.2f}", "compile_s": round(compile_s), "expected": round(expected_s)}  # fmt: skip
    pays = earns_back(ratio, compile_s, expected_s)
    if not pays:
        _go_back(bench, eager)
        return Decided(compiled=False, compile_s=compile_s, ratio=ratio, why=t("compile: given up. x{ratio} the speed after {compile_s} s of compiling does not pay in a run of about {expected} s", **figures))  # fmt: skip
    return Decided(compiled=True, compile_s=compile_s, ratio=ratio, why=t("compile: kept. x{ratio} the speed after {compile_s} s of compiling, in a run of about {expected} s", **figures))  # fmt: skip


def earns_back(ratio: float, compile_s: float, expected_s: float) -> bool:
    """Does it pay? Evaluation compiles once more, for passes without gradients."""
    return ratio <= 1 - LEAST_GAIN and expected_s * (1 - ratio) > compile_s


def _go_back(bench: Workbench, eager: Any) -> None:
    bench.engine.model = eager
    torch._dynamo.reset()
    bench.engine.free_memory()


def _timed(bench: Workbench, tried: list[Batch]) -> float:
    """Return the seconds of one pass over each batch: medians of a few, after one that does not count."""
    total = 0.0
    for batch in tried:
        rehearse(bench, batch)
        seconds = []
        for _ in range(PASSES):
            begun = time.perf_counter()
            rehearse(bench, batch)
            seconds.append(time.perf_counter() - begun)
        total += statistics.median(seconds)
    return total


def _batches(bench: Workbench) -> list[Batch]:
    """Return micro-batches of a few lengths out of the first epoch's."""
    windows = bench.windows(0)  # type: ignore[attr-defined]
    found = [part for window in windows[:50] for part in window]
    lengths = bench.data.train.lengths
    found.sort(key=lambda part: max(int(lengths[index]) for index in part))
    return batches_of(bench, [found[int(share * (len(found) - 1))] for share in SHAPES])


def _samples_each(tried: list[Batch]) -> float:
    return sum(len(batch["labels"]) for batch in tried) / len(tried)
