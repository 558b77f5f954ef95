"""The training loop, top to bottom.

A *window* is the samples of one update. Which samples, which dropout, which learning rate: all are functions
of the plan and the window's number, so a run continues from any window as if it had never stopped. Nothing is
judged by a mean of means: losses are sums, divided by what the whole window counts.
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import torch

from runner.compiling import settle_compiling
from runner.data import MicroBatches, batches, counts
from runner.engine import LOWEST_SCALE, SplitClock
from runner.final import finish_run
from runner.journal import Journal
from runner.memory_probe import probe_memory
from runner.memory_watch import watch_memory
from runner.milestones import evaluate_if_due, save_if_due
from runner.nonfinite import NonFiniteError, suspect_rows
from runner.optim import set_lr
from runner.order import EpochWindows, Window, position_of, windows_of_epoch
from runner.packed_attention import say_packing
from runner.passes import WindowCounts, window_passes
from runner.plan import Plan
from runner.proof import Proof
from runner.ranks import Ranks
from runner.recovery import float_buffers, make_room, out_of_memory_words, roll_back
from runner.rundir import RunDir
from runner.schedule import lr_at
from runner.seed import seed_step
from runner.signals import EXIT_SAVED, StopRequest
from runner.telling import say_started, say_step
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
            self.resume(approximate)
        say_started(self, resume)
        say_packing(self)
        self.pulse.watchdog.start()
        with nothing_to_save(self.stop.own, self.ranks):
            probe_memory(self)
        settle_compiling(self)
        self.stop.ask()
        self.engine.model.train()
        self.proof = Proof(self.plan, self.run, self.engine.bare_model, self.ranks.rank)
        self.memory = watch_memory(self)
        while not self._ended():
            epoch, first = position_of(self.state.windows_done, self.samples, self.train.batch_size)
            windows = self.windows(epoch)[first : first + self.total - self.state.windows_done]
            stream = self._stream(windows, epoch)
            for window in windows:
                if not evaluate_if_due(self) or self.stop:
                    return self._leave_on_signal()
                if self._ended():
                    break
                if not self._window_fits(window, stream, epoch):
                    break  # the same window again, cut smaller
                if self.proof.is_complete:
                    return Finished(outcome="stopped", exit_code=EXIT_SAVED, windows=self.state.windows_done)
                self.pulse.step_done()
                save_if_due(self)
            stream.close()
        if not evaluate_if_due(self) or self.stop:
            return self._leave_on_signal()
        metrics, final = finish_run(self)
        done = self.state.windows_done
        return Finished(outcome="completed", exit_code=0, windows=done, metrics=metrics, final_dir=str(final))

    def _ended(self) -> bool:
        return self.state.windows_done >= self.total or self.state.stopped_early

    def windows(self, epoch: int) -> EpochWindows:
        """Return the windows of an epoch, cut into micro-batches of the present size."""
        return windows_of_epoch(
            self.data.train.lengths,
            self.seed,
            epoch,
            self.train.batch_size,
            self.state.micro_batch_size,
            self.train.bucketing,
            self.train.micro_batch_tokens or 0,
            self.data.width,
            self.ranks.rank,
            self.ranks.size,
        )

    def _stream(self, windows: EpochWindows, epoch: int) -> Any:
        pin, workers = self.engine.pins, self.settings.workers
        return batches(self.data, "train", MicroBatches(windows), epoch, self.seed, workers, pin)

    def _window_fits(self, window: Window, stream: Any, epoch: int) -> bool:
        """Do one window; return False where memory was short and the window is to be tried again, cut
        smaller."""
        trouble = ""
        buffers = float_buffers(self.engine.bare_model)
        try:
            self._one_window(window, stream, epoch)
        except (RuntimeError, MemoryError) as error:
            trouble = out_of_memory_words(error)
            if not trouble:
                raise
        # Past the except block the error, its frames and their tensors are gone, and their memory with them.
        if trouble:
            make_room(self, trouble, buffers)
        return not trouble

    def _one_window(self, window: Window, stream: Any, epoch: int) -> None:
        """Forward and backward over the micro-batches of one window, then one update."""
        clock = SplitClock(self.engine.device)
        clock.start()
        micro_batches: list[Batch] = [next(stream) for _ in window]
        clock.lap("data")
        seed_step(self.seed, self.state.windows_done, self.ranks.rank)
        self.freeze.apply(self.engine.bare_model, self.state.updates_done)
        lr = lr_at(self.state.updates_done, self.total, self.train)
        set_lr(self.optimizer, lr)
        self.proof.window_begins(self.state.windows_done, micro_batches)
        counting = [batch for batch in micro_batches if counts(batch)]
        counted = sum(self.data.task.denominator(batch["labels"]) for batch in counting)
        (denominator,) = self.ranks.summed(counted)
        if denominator == 0:
            step = self.state.windows_done + 1
            self.journal.note(
                "warn", t("step {step}: nothing in it counts, no update is made", step=step), step
            )
            self._count_window(WindowCounts.of(counting), updated=False)
            return
        losses = window_passes(self, micro_batches, denominator, clock)
        norm = self.engine.gradient_norm(self.optimizer, self.train.clip_norm)
        *parts, norm_value = torch.stack([*losses, norm.detach().float().to(losses[0].device)]).tolist()
        (loss,) = self.ranks.summed(sum(parts))
        self.proof.gradients(loss)
        updated = self._update_unless_bad(micro_batches, parts, loss, norm_value)
        self.proof.window_ends(self.optimizer)
        clock.lap("optimizer")
        own = WindowCounts.of(counting)
        self._count_window(own, updated)
        say_step(self, own, loss, norm_value, lr, epoch, clock, updated)
        if self.memory is not None:
            self.memory.window_done(micro_batches)

    def _update_unless_bad(
        self, micro_batches: list[Batch], losses: list[float], loss: float, norm: float
    ) -> bool:
        """Make the update unless a number is not finite on any rank; return whether the weights changed.

        ``losses`` are of this rank's micro-batches; ``loss`` and ``norm`` are the window's, the same on all ranks.

        Raises:
            NonFiniteError: by the plan's policy, or after too many windows in a row.
        """
        state = self.state
        if math.isfinite(loss) and math.isfinite(norm):
            state.bad_windows_in_a_row = 0
            self.updating = True
            with self.engine.update_agreement():
                updated = self.engine.update(self.optimizer)
            self.updating = False
            self.engine.drop_gradients(self.optimizer)
            return updated
        state.non_finite_windows += 1
        state.bad_windows_in_a_row += 1
        trouble = NonFiniteError(state.windows_done, loss, norm, self._suspect_rows(micro_batches, losses))
        scaled = self.engine.scaler.is_enabled() and math.isfinite(loss)
        if self._too_many_bad(scaled) or (self.train.non_finite == "halt" and not scaled):
            raise trouble
        if scaled:  # the scaler sees the overflow, holds the update back, lowers the scale
            self.engine.update(self.optimizer)
            self.engine.drop_gradients(self.optimizer)
        else:
            self._leave_window_out(trouble)
        return False

    def _suspect_rows(self, micro_batches: list[Batch], losses: list[float]) -> list[int]:
        """Return the rows of all ranks' micro-batches that may be to blame."""
        counted = [pair for pair in zip(micro_batches, losses, strict=True) if counts(pair[0])]
        every = [pair for part in self.ranks.gathered(counted) for pair in part]
        return suspect_rows([batch for batch, _ in every], [loss for _, loss in every])

    def _too_many_bad(self, scaled: bool) -> bool:
        limit = SCALER_PATIENCE if scaled else self.train.non_finite_limit
        exhausted = scaled and self.engine.scaler.get_scale() < LOWEST_SCALE
        return self.state.bad_windows_in_a_row > limit or exhausted

    def _leave_window_out(self, trouble: NonFiniteError) -> None:
        self.engine.forget_window(self.optimizer)
        step = self.state.windows_done + 1
        text = t("step {step}: skipped, not finite; data rows: {rows}", step=step,
                 rows=", ".join(map(str, trouble.rows[:20])))  # fmt: skip
        self.journal.note("warn", text, step)
        if self.train.non_finite == "rollback":
            roll_back(self)

    def _count_window(self, own: WindowCounts, updated: bool) -> None:
        """Count a window over all ranks, and hear with it what any of them wants next."""
        state = self.state
        state.windows_done += 1
        state.updates_done += updated
        retry = self.retry_save_at == state.windows_done
        samples, stop, retries = self.ranks.summed(
            own.samples, bool(self.stop.own), retry and self.ranks.is_first
        )
        state.samples_done += int(samples)
        self.stop.hear(stop > 0)
        self.retry_is_due = retries > 0

    def _leave_on_signal(self) -> Finished:
        saved = self.save_now("signal")
        outcome, code = ("stopped", EXIT_SAVED) if saved else ("failed", 1)
        return Finished(outcome=outcome, exit_code=code, windows=self.state.windows_done)


def nothing_to_save(stop: StopRequest, ranks: Ranks | None) -> AbstractContextManager[None]:
    """Return a block that a stop ends at once; several processes are asked to leave together, at its end."""
    return stop.at_once() if ranks is None or ranks.size == 1 else nullcontext()


def run_training(
    plan: Plan, run: RunDir, journal: Journal, stop: StopRequest, resume: bool, approximate: bool,
    ranks: Ranks | None = None,
) -> Finished:  # fmt: skip
    """Train the plan in ``run``; what goes wrong comes out as an exception for the session to report."""
    started = time.monotonic()
    with nothing_to_save(stop, ranks):
        trainer = Trainer(plan, run, journal, stop, ranks)
    try:
        finished = trainer.train_all(resume, approximate)
    finally:
        trainer.pulse.watchdog.close()
        trainer.saver.wait()
        trainer.trackers.finish()
    journal.say(f"{finished.outcome} after {time.monotonic() - started:.0f} s")
    return finished
