"""What comes every so many windows: an evaluation, a checkpoint. Both are due by the window's number alone."""

from __future__ import annotations

import math

from runner.evaluation import Evaluation, evaluate
from runner.order import position_of
from runner.recovery import out_of_memory_words
from runner.text import t
from runner.workbench import Workbench


def is_due(bench: Workbench, every: int | str) -> bool:
    """Is something due now that happens every so many windows, each epoch, or at the end?"""
    done = bench.state.windows_done
    if done == 0:
        return False
    if done >= bench.total:
        return True
    if isinstance(every, int):
        return done % every == 0
    return every == "epoch" and position_of(done, bench.samples, bench.train.batch_size)[1] == 0


def evaluate_if_due(bench: Workbench) -> bool:
    """Evaluate where it is due and not yet done; return False where asked to stop meanwhile."""
    state = bench.state
    if not is_due(bench, bench.train.evaluate_every) or state.evaluated_at == state.windows_done:
        return True
    result = _evaluate_in_memory(bench)
    if result is None:
        return False
    best = take_in(bench, result.metrics)
    bench.journal.write(
        "evaluation",
        state.windows_done,
        **result.metrics,
        samples=result.samples,
        seconds=result.seconds,
        best=best,
    )
    shown = " ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
    bench.journal.say(f"evaluation at step {state.windows_done}: {shown}")
    if best and (bench.train.restore_best or bench.train.patience):
        bench.save("best")
    return True


def _evaluate_in_memory(bench: Workbench) -> Evaluation | None:
    """Evaluate, in smaller batches where memory is short; that never touches the training's."""
    workers = bench.settings.workers
    while True:
        size, trouble = bench.state.eval_batch_size, ""
        try:
            return evaluate(
                bench.engine, bench.data, size, bench.seed, workers, bench.stop, bench.pulse.evaluated
            )
        except (RuntimeError, MemoryError) as error:
            trouble = out_of_memory_words(error)
            if size == 1 or not trouble:
                raise
        bench.engine.free_memory()
        bench.state.eval_batch_size = size // 2
        bench.journal.note(
            "warn",
            t("evaluation out of memory ({why}); again {size} at a time", why=trouble, size=size // 2),
            bench.state.windows_done,
        )


def take_in(bench: Workbench, metrics: dict[str, float]) -> bool:
    """Record an evaluation; return whether it is the best so far. What is not finite is never the best."""
    state, counted = bench.state, bench.data.task.metrics()
    value = metrics[counted.main]
    better = state.best_value is None or (value > state.best_value) == counted.larger_is_better
    best = math.isfinite(value) and better and value != state.best_value
    # JSON holds no NaN: a checkpoint with one could not be read again. The event says it.
    finite = {name: number for name, number in metrics.items() if math.isfinite(number)}
    state.evaluated_at, state.metrics = state.windows_done, finite
    if best:
        state.best_value, state.best_window, state.evaluations_since_best = value, state.windows_done, 0
    else:
        state.evaluations_since_best += 1
    patience = bench.train.patience
    state.stopped_early = patience is not None and state.evaluations_since_best >= patience
    return best


def save_if_due(bench: Workbench) -> None:
    """Begin a checkpoint where one is due; an evaluation due at the same window comes before it."""
    bench.say_saves()
    done = bench.state.windows_done
    due = is_due(bench, bench.train.checkpoint_every) or bench.retry_is_due
    if done < bench.total and due and evaluate_if_due(bench):
        bench.save("interval")
