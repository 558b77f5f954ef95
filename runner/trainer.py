"""The training loop, top to bottom.

A *window* is the samples of one update. Which samples, which dropout, which learning rate: all are functions
of the plan and the window's number, so a run continues from any window as if it had never stopped. Nothing is
judged by a mean of means: losses are sums, divided by what the whole window counts.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import msgspec
import torch

from runner.build import build_model, checkpoint_activations
from runner.checkpoint import load_model, newest_good, read_state
from runner.data import MicroBatches, batches
from runner.engine import LOWEST_SCALE, SplitClock
from runner.evaluation import Evaluation, evaluate
from runner.final import write_final
from runner.inputs import InputError
from runner.journal import Journal
from runner.nonfinite import NonFiniteError, suspect_rows
from runner.oom import is_out_of_memory, next_smaller
from runner.optim import set_lr
from runner.order import EpochWindows, Window, position_of, windows_of_epoch
from runner.plan import Plan
from runner.proof import Proof
from runner.rundir import RunDir
from runner.schedule import lr_at
from runner.seed import seed_step
from runner.signals import EXIT_SAVED, StopRequest
from runner.text import t
from runner.workbench import Batch, Workbench

SCALER_PATIENCE = 50
"""So many updates in a row held back by the loss scaler are a fault, not the scale settling."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended; ``outcome`` and ``exit_code`` as in ``run-finished``."""

    outcome: str
    exit_code: int
    windows: int = 0
    metrics: dict[str, float] = {}
    final_dir: str = ""


class Trainer(Workbench):
    """The loop over a run's windows."""

    def train_all(self, resume: bool, approximate: bool = False) -> Finished:
        """Train to the end of the plan, or until asked to stop.

        Raises:
            NonFiniteError: before a non-finite number reached the weights.
            InputError: a checkpoint that cannot be continued exactly.
        """
        if resume:
            self._resume(approximate)
        self._say_started(resume)
        self.engine.model.train()
        self.proof = Proof(self.plan, self.run, self.engine.bare_model)
        while not self._ended():
            epoch, first = position_of(self.state.windows_done, self.samples, self.train.batch_size)
            windows = self._windows(epoch)[first : first + self.total - self.state.windows_done]
            pin = self.engine.device.type == "cuda"
            stream = batches(
                self.data, "train", MicroBatches(windows), epoch, self.seed, self.settings.workers, pin
            )
            for window in windows:
                if not self._evaluate_if_due() or self.stop:
                    return self._leave_on_signal()
                if self._ended():
                    break
                if not self._window_fits(window, stream, epoch):
                    break  # the same window again, cut smaller
                if self.proof.is_complete:
                    return Finished(outcome="stopped", exit_code=EXIT_SAVED, windows=self.state.windows_done)
                self._save_if_due()
            stream.close()
        if not self._evaluate_if_due() or self.stop:
            return self._leave_on_signal()
        return self._finish()

    def _ended(self) -> bool:
        return self.state.windows_done >= self.total or self.state.stopped_early

    def _windows(self, epoch: int) -> EpochWindows:
        return windows_of_epoch(
            self.data.train.lengths,
            self.seed,
            epoch,
            self.train.batch_size,
            self.state.micro_batch_size,
            self.train.bucketing,
        )

    def _one_window(self, window: Window, stream: Any, epoch: int) -> None:
        """Forward and backward over the micro-batches of one window, then one update."""
        clock = SplitClock(self.engine.device)
        clock.start()
        micro_batches: list[Batch] = [next(stream) for _ in window]
        clock.lap("data")
        seed_step(self.seed, self.state.windows_done)
        self.freeze.apply(self.state.updates_done)
        lr = lr_at(self.state.updates_done, self.total, self.train)
        set_lr(self.optimizer, lr)
        self.proof.window_begins(self.state.windows_done, micro_batches)
        denominator = sum(self.data.task.denominator(batch["labels"]) for batch in micro_batches)
        if denominator == 0:
            step = self.state.windows_done + 1
            self.journal.note(
                "warn", t("step {step}: nothing in it counts, no update is made", step=step), step
            )
            self._count_window(micro_batches, updated=False)
            return
        losses = []
        for batch in micro_batches:
            moved = self.engine.to_device(batch)
            logits = self.engine.logits(moved)
            loss = self.data.task.loss_sum(logits, moved["labels"]) / denominator
            clock.lap("forward")
            self.engine.backward(loss)
            clock.lap("backward")
            losses.append(loss.detach())
        norm = self.engine.gradient_norm(self.optimizer, self.train.clip_norm)
        *parts, norm_value = torch.stack([*losses, norm.detach().float()]).tolist()
        self.proof.gradients(sum(parts))
        updated = self._update_unless_bad(micro_batches, parts, norm_value)
        self.proof.window_ends(self.optimizer)
        clock.lap("optimizer")
        self._count_window(micro_batches, updated)
        self._say_step(micro_batches, sum(parts), norm_value, lr, epoch, clock, updated)

    def _update_unless_bad(self, micro_batches: list[Batch], losses: list[float], norm: float) -> bool:
        """Make the update unless a number is not finite; return whether the weights changed.

        Raises:
            NonFiniteError: by the plan's policy, or after too many windows in a row.
        """
        state = self.state
        finite = math.isfinite(sum(losses)) and math.isfinite(norm)
        if finite:
            state.bad_windows_in_a_row = 0
            self._updating = True
            updated = self.engine.update(self.optimizer)
            self._updating = False
            self.engine.drop_gradients(self.optimizer)
            return updated
        state.non_finite_windows += 1
        state.bad_windows_in_a_row += 1
        trouble = NonFiniteError(state.windows_done, sum(losses), norm, suspect_rows(micro_batches, losses))
        scaled = self.engine.scaler.is_enabled() and math.isfinite(sum(losses))
        limit = SCALER_PATIENCE if scaled else self.train.non_finite_limit
        too_many = state.bad_windows_in_a_row > limit or (
            scaled and self.engine.scaler.get_scale() < LOWEST_SCALE
        )
        if too_many or (self.train.non_finite == "halt" and not scaled):
            raise trouble
        if scaled:
            self.engine.update(
                self.optimizer
            )  # the scaler sees the overflow, holds the update back, lowers the scale
            self.engine.drop_gradients(self.optimizer)
        else:
            self.engine.forget_window(self.optimizer)
            text = t("step {step}: skipped, not finite; data rows: {rows}", step=state.windows_done + 1,
                     rows=", ".join(map(str, trouble.rows[:20])))  # fmt: skip
            self.journal.note("warn", text, state.windows_done + 1)
            if self.train.non_finite == "rollback":
                self._roll_back()
        return False

    def _roll_back(self) -> None:
        """Take weights, moments and schedule of the last good checkpoint (or of the beginning), and go on from
        here in the data: what led to this window is left out with it."""
        state = self.state
        self._go_back_to_last_good()
        went_back_to = self.state.windows_done
        state.updates_done = self.state.updates_done
        self.state, self.saved_at = state, -1
        text = t("step {step}: weights and schedule of step {before} put back; the data goes on from here",
                 step=state.windows_done + 1, before=went_back_to)  # fmt: skip
        self.journal.note("warn", text, state.windows_done + 1)

    def _count_window(self, micro_batches: list[Batch], updated: bool) -> None:
        self.state.windows_done += 1
        self.state.updates_done += updated
        self.state.samples_done += sum(len(batch["labels"]) for batch in micro_batches)

    # -- memory --------------------------------------------------------------------------------------------------
    def _window_fits(self, window: Window, stream: Any, epoch: int) -> bool:
        """Do one window; return False where memory was short and the window is to be tried again, cut
        smaller."""
        trouble = ""
        buffers = float_buffers(self.engine.bare_model)
        try:
            self._one_window(window, stream, epoch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            trouble = str(error).partition("\n")[0][:200]
        # Past the except block the error, its frames and their tensors are gone, and their memory with them.
        if trouble:
            self._make_room(trouble, buffers)
        return not trouble

    def _make_room(self, trouble: str, buffers: dict[str, torch.Tensor]) -> None:
        """Go back to before the window and take the next smaller way to do it.

        Raises:
            InputError: when there is none.
        """
        self.engine.forget_window(self.optimizer)
        self.engine.free_memory()
        if self._updating:
            self._updating = False
            self._go_back_to_last_good()
        else:
            self.engine.bare_model.load_state_dict(buffers, strict=False)
        state, step = self.state, self.state.windows_done + 1
        smaller = next_smaller(state.micro_batch_size, self.train.batch_size)
        if smaller is not None:
            text = t(
                "step {step}: out of memory ({why}); the same batch again in micro-batches of {smaller} instead of {size}",
                step=step,
                why=trouble,
                smaller=smaller,
                size=state.micro_batch_size,
            )
            state.micro_batch_size = smaller
        elif not state.gradient_checkpointing:
            text = t("step {step}: out of memory even one by one ({why}); gradient checkpointing is switched on",
                     step=step, why=trouble)  # fmt: skip
            state.gradient_checkpointing = True
            checkpoint_activations(self.engine.bare_model)
        else:
            raise InputError(t("step {step}: out of memory even one sample at a time with gradient checkpointing ({why}); "
                               "take a smaller model or a smaller train.max_length", step=step, why=trouble))  # fmt: skip
        self.journal.note("warn", text, step)

    def _go_back_to_last_good(self) -> None:
        """An update was cut off half-way: some weights have it, some do not. Take the last good ones."""
        self.saver.wait()
        self._say_saves()
        folder = newest_good(self.run, self._say_bad)
        if folder is not None:
            self._load(folder, read_state(folder))
            return
        fresh, _ = build_model(self.plan, self.data.task, self.data.tokenizer)
        self.engine.bare_model.load_state_dict(fresh.state_dict())
        self.optimizer.state.clear()
        self.state = msgspec.structs.replace(self.state, windows_done=0, updates_done=0, samples_done=0)

    # -- evaluation, checkpoints ---------------------------------------------------------------------------------
    def _due(self, every: int | str) -> bool:
        """Is something due now that happens every so many windows, each epoch, or at the end?"""
        done = self.state.windows_done
        if done == 0:
            return False
        if done >= self.total:
            return True
        if isinstance(every, int):
            return done % every == 0
        return every == "epoch" and position_of(done, self.samples, self.train.batch_size)[1] == 0

    def _evaluate_if_due(self) -> bool:
        """Evaluate where it is due and not yet done; return False where asked to stop meanwhile."""
        state = self.state
        if not self._due(self.train.evaluate_every) or state.evaluated_at == state.windows_done:
            return True
        result = self._evaluate_in_memory()
        if result is None:
            return False
        best = self._take_in(result.metrics)
        self.journal.write(
            "evaluation",
            state.windows_done,
            **result.metrics,
            samples=result.samples,
            seconds=result.seconds,
            best=best,
        )
        shown = " ".join(f"{name} {value:.4f}" for name, value in result.metrics.items())
        self.journal.say(f"evaluation at step {state.windows_done}: {shown}")
        if best and (self.train.restore_best or self.train.patience):
            self._save("best")
        return True

    def _evaluate_in_memory(self) -> Evaluation | None:
        """Evaluate, in smaller batches where memory is short; that never touches the training's."""
        workers = self.settings.workers
        while True:
            size, trouble = self.state.eval_batch_size, ""
            try:
                return evaluate(self.engine, self.data, size, self.seed, workers, self.stop)
            except (RuntimeError, MemoryError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
                trouble = str(error).partition("\n")[0][:200]
            self.engine.free_memory()
            self.state.eval_batch_size = size // 2
            self.journal.note(
                "warn",
                t("evaluation out of memory ({why}); again {size} at a time", why=trouble, size=size // 2),
                self.state.windows_done,
            )

    def _take_in(self, metrics: dict[str, float]) -> bool:
        """Record an evaluation; return whether it is the best so far. What is not finite is never the
        best."""
        state, counted = self.state, self.data.task.metrics()
        value = metrics[counted.main]
        better = state.best_value is None or (value > state.best_value) == counted.larger_is_better
        best = math.isfinite(value) and better and value != state.best_value
        state.evaluated_at, state.metrics = state.windows_done, metrics
        if best:
            state.best_value, state.best_window, state.evaluations_since_best = value, state.windows_done, 0
        else:
            state.evaluations_since_best += 1
        state.stopped_early = (
            self.train.patience is not None and state.evaluations_since_best >= self.train.patience
        )
        return best

    def _save_if_due(self) -> None:
        """Begin a checkpoint where one is due; an evaluation due at the same window comes before it."""
        self._say_saves()
        done = self.state.windows_done
        due = self._due(self.train.checkpoint_every) or done == self.retry_save_at
        if done < self.total and due and self._evaluate_if_due():
            self._save("interval")

    # -- the end -------------------------------------------------------------------------------------------------
    def _leave_on_signal(self) -> Finished:
        if not self._save_now("signal"):
            return Finished(outcome="failed", exit_code=1, windows=self.state.windows_done)
        return Finished(outcome="stopped", exit_code=EXIT_SAVED, windows=self.state.windows_done)

    def _finish(self) -> Finished:
        """Save the end, put the best weights back where wanted, and write the model that ``from_pretrained``
        opens."""
        if self.state.stopped_early:
            self.journal.note("info", t("stopped early: {count} evaluations without a better one",
                                        count=self.state.evaluations_since_best))  # fmt: skip
        self._save_now("end")
        metrics = dict(self.state.metrics)
        if self.train.restore_best and self.state.best_window not in (None, self.state.windows_done):
            metrics = self._restore_best()
        final = write_final(self.run, self.plan, self.data, self.engine.bare_model, self.state, metrics)
        return Finished(
            outcome="completed",
            exit_code=0,
            windows=self.state.windows_done,
            metrics=metrics,
            final_dir=str(final),
        )

    def _restore_best(self) -> dict[str, float]:
        folder: Path = self.run.checkpoint(int(self.state.best_window or 0))
        if not folder.is_dir():
            self.journal.note(
                "warn", t("the best checkpoint {path} is gone: the last weights are kept", path=str(folder))
            )
            return dict(self.state.metrics)
        load_model(folder, self.engine.bare_model)
        return dict(read_state(folder).metrics)


def float_buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of what a forward pass may change without a gradient (running means and the like)."""
    saved = model.state_dict()
    return {
        name: tensor.clone()
        for name, tensor in model.named_buffers()
        if name in saved and tensor.is_floating_point()
    }


def run_training(
    plan: Plan, run: RunDir, journal: Journal, stop: StopRequest, resume: bool, approximate: bool
) -> Finished:
    """Train the plan in ``run``; what goes wrong comes out as an exception for the session to report."""
    started = time.monotonic()
    trainer = Trainer(plan, run, journal, stop)
    try:
        finished = trainer.train_all(resume, approximate)
    finally:
        trainer.saver.wait()
        trainer.trackers.finish()
    journal.say(f"{finished.outcome} after {time.monotonic() - started:.0f} s")
    return finished
