"""``train.compile``: whether the model is compiled, tried before the first step and written into the run.

``auto`` keeps it where it pays, ``true`` wherever it works. Compiled kernels add in another order, so a run that is continued
must do as it began: what was decided lies in ``RUN/compile.json``. Whether it pays is decided by time, so another run of the
same plan may decide otherwise.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from runner.compile_passes import look_for_storm, some_batches, timed, whole_run_s
from runner.compile_trial import (
    STOPPED,
    TOLERANCE,
    GivenUp,
    at_most,
    furthest_apart,
    missing,
    stop_compilers,
    why_of,
)
from runner.durable import write_durably
from runner.rehearsal import leaving_no_trace, rehearse
from runner.text import Text, t
from runner.workbench import Batch, Workbench

LEAST_RUN_S = 300.0
"""A shorter run cannot earn a compilation back: it takes half a minute to two minutes."""
LEAST_GAIN = 0.05
MOST_S = 120.0
"""Compiling may take so long, or :data:`MOST_SHARE` of the run where that is longer."""
MOST_SHARE = 0.02
FILE = "compile.json"


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """``compile.json``"""

    compiled: bool
    why: Text
    compile_s: float = 0.0
    ratio: float = 0.0
    """Compiled seconds a pass by eager ones."""


def settle_compiling(bench: Workbench) -> None:
    """Decide whether the model is compiled, and go on so. Where it cannot be, a sentence says why and the run goes on without."""
    if not bench.settings.compile:
        return
    path = bench.run.path / FILE
    before = _decided_before(bench)
    if before is not None:
        if before.compiled:
            _go_on_compiled(bench)
        return
    decided = _decide(bench)
    if (
        decided.compiled or not bench.stop.own
    ):  # one that was broken off by a stop is tried again by who goes on
        write_durably(path, msgspec.json.encode(decided))
    bench.journal.note(
        "info" if decided.compiled or bench.settings.compile == "auto" else "warn", decided.why
    )


def _decided_before(bench: Workbench) -> Decided | None:
    path = bench.run.path / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Decided)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        why = t(
            "compile: {path} cannot be read ({why}); the run goes on without", path=str(path), why=str(error)
        )
        bench.journal.note("warn", why)
        return Decided(compiled=False, why=why)


def _go_on_compiled(bench: Workbench) -> None:
    """Compile as the run did so far; where that is not possible here, go on without and say what that means."""
    bench.engine.compile()
    if bench.engine.placed.processes > 1:
        return
    try:
        with leaving_no_trace(bench), at_most(10 * MOST_S, lambda: bool(bench.stop.own)):
            lacking = missing(bench.engine.device.type)
            if lacking is not None:
                raise GivenUp(lacking)
            rehearse(bench, some_batches(bench)[0])
    except Exception as error:  # a compiler, a kernel: this machine cannot what the one before could
        _go_back(bench)
        if bench.stop.own:  # nothing more is trained: who goes on compiles again
            bench.journal.note("info", STOPPED)
            return
        bench.journal.note("warn", why_of(error))
        bench.journal.note(
            "warn", t("compile: this run was compiled so far: from here on it rounds otherwise")
        )


def _decide(bench: Workbench) -> Decided:
    if bench.settings.compile == "auto":
        if bench.state.windows_done:
            return Decided(compiled=False, why=t("compile: this run began without and goes on so"))
        if bench.engine.placed.processes > 1:
            return Decided(compiled=False, why=t("compile: not tried, several processes train together"))
    elif bench.engine.placed.processes > 1:
        bench.engine.compile()
        return Decided(compiled=True, why=t("compile: on, as asked for"))
    lacking = missing(bench.engine.device.type)
    if lacking is not None:
        return Decided(compiled=False, why=lacking)
    tried = some_batches(bench)
    with leaving_no_trace(bench):
        try:
            middle = tried[len(tried) // 2 : len(tried) // 2 + 1]
            expected_s = whole_run_s(bench, middle, timed(bench, middle, passes=1))
            if bench.settings.compile == "auto" and expected_s < LEAST_RUN_S:
                return Decided(compiled=False, why=t("compile: not tried, the whole run takes about {seconds} s and would not earn it back", seconds=round(expected_s)))  # fmt: skip
            eager_s = timed(bench, tried)
        except GivenUp as error:
            return Decided(compiled=False, why=error.text)
        return _tried(bench, tried, eager_s, whole_run_s(bench, tried, eager_s))


def _tried(bench: Workbench, tried: list[Batch], eager_s: float, expected_s: float) -> Decided:
    begun = time.perf_counter()
    bench.journal.note(
        "info", t("compile: tried now, for at most {seconds} s", seconds=round(_limit_s(expected_s)))
    )
    try:
        with at_most(_limit_s(expected_s), lambda: bool(bench.stop.own)):
            eager = bench.engine.model
            bench.engine.compile()
            for batch in tried:
                rehearse(bench, batch)
            look_for_storm(bench)
            apart = max(furthest_apart(bench.engine, eager, batch) for batch in tried)
        compile_s = time.perf_counter() - begun
        ratio = timed(bench, tried) / eager_s
    except Exception as error:  # a compiler, a kernel, a model it cannot trace: the run goes on without
        _go_back(bench)
        return Decided(compiled=False, why=why_of(error))
    figures: dict[str, Any] = {"ratio": f"{1 / ratio:.2f}", "compile_s": round(compile_s), "expected": round(expected_s)}  # fmt: skip
    if not apart <= TOLERANCE[bench.engine.precision]:  # not a number is no agreement either
        _go_back(bench)
        return Decided(compiled=False, compile_s=compile_s, ratio=ratio, why=t("compile: given up. The compiled model answers differently: {apart} of the largest logit", apart=f"{apart:.1e}"))  # fmt: skip
    if bench.settings.compile is True:
        return Decided(compiled=True, compile_s=compile_s, ratio=ratio, why=t("compile: on, as asked for. x{ratio} the speed after {compile_s} s of compiling", **figures))  # fmt: skip
    if not earns_back(ratio, compile_s, expected_s):
        _go_back(bench)
        return Decided(compiled=False, compile_s=compile_s, ratio=ratio, why=t("compile: given up. x{ratio} the speed after {compile_s} s of compiling does not pay in a run of about {expected} s", **figures))  # fmt: skip
    return Decided(compiled=True, compile_s=compile_s, ratio=ratio, why=t("compile: kept. x{ratio} the speed after {compile_s} s of compiling, in a run of about {expected} s", **figures))  # fmt: skip


def earns_back(ratio: float, compile_s: float, expected_s: float) -> bool:
    """Does it pay? Passes without gradients, as evaluation makes them, are in ``compile_s``."""
    return ratio <= 1 - LEAST_GAIN and expected_s * (1 - ratio) > compile_s


def _limit_s(expected_s: float) -> float:
    return max(MOST_S, MOST_SHARE * expected_s)


def _go_back(bench: Workbench) -> None:
    bench.engine.go_uncompiled()
    stop_compilers()
    bench.engine.free_memory()
