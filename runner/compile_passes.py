"""The passes of a compile trial: which batches they take, how long they are, and whether each length is compiled anew."""

from __future__ import annotations

import statistics
import time
from typing import Any

from runner.compile_trial import STOPPED, GivenUp, graphs_made
from runner.rehearsal import batches_of, rehearse
from runner.text import t
from runner.workbench import Batch, Workbench

SHAPES = (0.1, 0.5, 0.9)
"""Micro-batches of these quantiles of the padded length are timed."""
OTHER_SHAPES = (0.3, 0.7)
"""Lengths tried afterwards: they are to be served by what was compiled for the others."""
PASSES = 3


def look_for_storm(bench: Workbench) -> None:
    """Send batches of lengths through that it has not seen: they are to be served by what is compiled already.

    Raises:
        GivenUp: it compiles again for each, and would throughout the run. Where compiling was asked for, it is only said.
    """
    anew = 0
    for batch in some_batches(bench, OTHER_SHAPES):
        before = graphs_made()
        rehearse(bench, batch)
        anew += graphs_made() > before
    figures: dict[str, Any] = {"times": anew, "batches": len(OTHER_SHAPES)}
    if anew < len(OTHER_SHAPES):  # once is a bound that one length crosses
        return
    if bench.settings.compile == "auto":
        raise GivenUp(t("compile: given up, other lengths are compiled anew ({times} {times:time|times} in {batches} batches); the run goes on without", **figures))  # fmt: skip
    bench.journal.note("warn", t("compile: other lengths are compiled anew ({times} {times:time|times} in {batches} batches): the run will stop for that again and again", **figures))  # fmt: skip


def whole_run_s(bench: Workbench, tried: list[Batch], seconds: float) -> float:
    """Return how long the whole run takes where these batches took ``seconds`` together."""
    return seconds / len(tried) * bench.total * bench.train.batch_size / samples_each(tried)


def timed(bench: Workbench, tried: list[Batch], passes: int = PASSES) -> float:
    """Return the seconds of one pass over each batch: medians of a few, after one that does not count.

    Raises:
        GivenUp: the run is asked to stop.
    """
    total = 0.0
    for batch in tried:
        rehearse(bench, batch)
        seconds = []
        for _ in range(passes):
            if bench.stop.own:
                raise GivenUp(STOPPED)
            begun = time.perf_counter()
            rehearse(bench, batch)
            seconds.append(time.perf_counter() - begun)
        total += statistics.median(seconds)
    return total


def some_batches(bench: Workbench, shares: tuple[float, ...] = SHAPES) -> list[Batch]:
    """Return micro-batches of a few lengths out of the first epoch's."""
    windows = bench.windows(0)  # type: ignore[attr-defined]
    found = [part for window in windows[:50] for part in window]
    lengths = bench.data.train.lengths
    found.sort(key=lambda part: max(int(lengths[index]) for index in part))
    return batches_of(bench, [found[int(share * (len(found) - 1))] for share in shares])


def samples_each(tried: list[Batch]) -> float:
    return sum(len(batch["labels"]) for batch in tried) / len(tried)
