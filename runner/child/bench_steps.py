"""``python -u RUN/code/runner/child/bench_steps.py RUN``: one epoch of a planned run's steps, timed; writes RUN/bench.json.

Every variant of a comparison trains on the same samples: the plan's rows are one epoch's. Before the steps, one pass without
dropout over the same first samples gives a loss and a gradient norm that equal settings must share, and the largest, a
middle and the smallest micro-batch go through once, so that kernels, allocator and compiler have seen every length.
"""

import math
import os
import resource
import sys
import time
from typing import Any

EQUAL_SAMPLES = 32
"""The first rows of the training part: which loss they have does not depend on order, cut or padding."""


def main(path: str) -> int:
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path[:] = [
        home,
        *(entry for entry in sys.path if entry != os.path.dirname(os.path.abspath(__file__))),
    ]
    from pathlib import Path

    import msgspec

    from runner.rundir import RunDir

    run = RunDir(Path(path))
    (run.path / "bench.json").write_bytes(msgspec.json.encode(answer(run)))
    return 0


def answer(run: Any) -> dict[str, Any]:
    """Return the figures, or why there are none where that is known: memory was short, a number was none."""
    from runner.nonfinite import NonFiniteError
    from runner.recovery import out_of_memory_words
    from runner.text import t

    try:
        figures = measured(run)
    except NonFiniteError as error:
        return {"refused": {"why": error.text}}
    except (RuntimeError, MemoryError) as error:
        words = out_of_memory_words(error)
        if not words:
            raise
        return {"refused": {"why": t("out of memory ({why})", why=words), "memory_short": True}}
    if not math.isfinite(figures["loss"]) or not math.isfinite(figures["grad_norm"]):
        return {"refused": {"why": t("the loss of the first samples is {loss}, its gradient norm {norm}",
                                     loss=str(figures["loss"]), norm=str(figures["grad_norm"]))}}  # fmt: skip
    return {"measured": figures}


def measured(run: Any) -> dict[str, Any]:
    """Train the plan's one epoch and return what that took. Raises what training raises."""
    import torch

    from runner.child import memory_guard
    from runner.events import EventWriter
    from runner.journal import Journal
    from runner.plan import decode_plan
    from runner.proof import Proof
    from runner.signals import StopRequest
    from runner.trainer import Trainer

    plan = decode_plan(run.plan.read_bytes())
    run.events.mkdir(exist_ok=True)
    bench: Any = Trainer(
        plan, run, Journal(EventWriter(run.events / "trainer-0.jsonl", "trainer-0")), StopRequest()
    )
    if bench.settings.compile:
        bench.engine.compile()
    bench.engine.model.train()
    bench.proof, bench.memory = Proof(plan, run, bench.engine.bare_model), None
    loss, norm = same_loss(bench)
    warm_up_s = warm_up(bench)
    on_card = bench.engine.device.type == "cuda"
    counts_from_here = memory_guard.begin_anew()
    if on_card:
        torch.cuda.reset_peak_memory_stats()
    windows = bench.windows(0)
    stream = bench._stream(windows, 0)
    begun, cpu_begun = time.perf_counter(), cpu_seconds()
    for window in windows:
        bench._one_window(window, stream, 0)
    if on_card:
        torch.cuda.synchronize()
    wall_s = time.perf_counter() - begun
    stream.close()  # workers that ended have their CPU seconds counted
    cpu_s = cpu_seconds() - cpu_begun
    return {
        "wall_s": wall_s, "cpu_s": cpu_s, "windows": len(windows), "warm_up_s": warm_up_s,
        "loss": loss, "grad_norm": norm, **trained(run),
        "peak_bytes": torch.cuda.max_memory_allocated() if on_card else most_held(),
        "peak_is_exact": on_card or counts_from_here,
    }  # fmt: skip


def most_held() -> int:
    """Return the most bytes this process held; where the kernel keeps no high-water mark, the C library's."""
    from runner.child import memory_guard

    try:
        return memory_guard.status_bytes("VmHWM")
    except LookupError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its workers that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def same_loss(bench: Any) -> tuple[float, float]:
    """Return the mean loss and the gradient norm of the first samples, without dropout."""
    import torch

    from runner.evaluation import evaluation_mode
    from runner.order import Cut
    from runner.rehearsal import batches_of, leaving_no_trace

    engine, task, train = bench.engine, bench.data.task, bench.train
    first = list(range(min(EQUAL_SAMPLES, len(bench.data.train))))
    cut = Cut(
        bench.settings.micro_batch_size,
        train.micro_batch_tokens or 0,
        bench.data.train.lengths,
        bench.data.width,
    )
    batches = batches_of(bench, cut.window(first))
    counted = sum(task.denominator(batch["labels"]) for batch in batches)
    total = 0.0
    with leaving_no_trace(bench), evaluation_mode(engine.model):
        for batch in batches:
            moved = engine.to_device(batch)
            loss = task.loss_sum(engine.logits(moved), moved["labels"]) / counted
            loss.backward()
            total += float(loss.detach())
        grads = [one.grad for one in engine.bare_model.parameters() if one.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(grads)) if hasattr(torch.nn.utils, "get_total_norm") else float(
            torch.stack([one.norm() for one in grads]).norm()
        )  # fmt: skip
    return total, norm


def warm_up(bench: Any) -> float:
    """Send micro-batches of a few lengths through, the longest first; return the seconds that took."""
    from runner.memory_probe import worst_samples
    from runner.rehearsal import batches_of, leaving_no_trace, rehearse

    lengths = bench.data.train.lengths
    parts = [part for window in bench.windows(0) for part in window]
    parts.sort(key=lambda part: max(int(lengths[index]) for index in part))
    tried = [worst_samples(bench), parts[len(parts) // 2], parts[0]]
    begun = time.perf_counter()
    with leaving_no_trace(bench):
        for batch in batches_of(bench, tried):
            rehearse(bench, batch)
    return time.perf_counter() - begun


def trained(run: Any) -> dict[str, Any]:
    """Return what the run's own step events count: samples, tokens, positions, losses."""
    from runner.events import read_events

    steps = [event.data for event, _ in read_events(run.events / "trainer-0.jsonl") if event.kind == "step"]
    sums = {name: sum(step[name] for step in steps) for name in ("samples", "tokens", "padded_tokens")}
    return {**sums, "losses": [step["loss"] for step in steps]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
