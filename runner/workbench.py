"""What a run in progress holds: its data, model, optimizer and place; how that is saved and loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import torch

from runner.base import base_hash, base_name, still_names
from runner.build import checkpoint_activations
from runner.checkpoint import (
    BadCheckpoint,
    load_optimizer,
    newest_good,
    put_weights,
    read_state,
    take_copy,
    whole_tensors,
)
from runner.choices import recomputes
from runner.data import Prepared
from runner.engines import make_engine
from runner.exactness import conditions, refuse_or_accept
from runner.freeze import FreezePlan
from runner.inputs import InputError
from runner.journal import Journal
from runner.offload import weights_changed
from runner.order import windows_total
from runner.placement import place_model
from runner.plan import Plan
from runner.prepare import prepare_data
from runner.pulse import Pulse
from runner.rank_env import threads_each
from runner.ranks import AgreedStop, Ranks
from runner.rundir import RunDir
from runner.same_start import refuse_different_starts
from runner.saver import Saver
from runner.seed import set_deterministic
from runner.signals import StopRequest
from runner.text import t
from runner.together_data import built_together, prepared_together, share_weights
from runner.trackers import flat_config, make_trackers
from runner.train_state import TrainState
from runner.watchdog import Watchdog, dump_name

RETRY_SAVE_AFTER = 20
"""Windows after which a checkpoint that could not be written is tried again."""

Batch = dict[str, torch.Tensor]


class Workbench:
    """One run in one process; :class:`runner.trainer.Trainer` works on it."""

    def __init__(
        self, plan: Plan, run: RunDir, journal: Journal, stop: StopRequest, ranks: Ranks | None = None
    ) -> None:
        self.plan, self.run, self.journal = plan, run, journal
        self.ranks = ranks or Ranks()
        self.stop = AgreedStop(stop, self.ranks)
        self.settings, self.train = plan.settings, plan.profile.train
        self.seed = plan.profile.run.seed
        set_deterministic(self.train.deterministic)
        self.threads = threads_each(self.settings.threads, self.ranks.place)
        torch.set_num_threads(self.threads)
        refuse_different_starts(plan, self.ranks)
        self.data: Prepared = prepared_together(
            self.ranks, stop, lambda: prepare_data(plan, run, journal.note, stop, journal.preparing)
        )
        self._build()
        self.saver = Saver(run, self.train.keep_last)
        self.saved_at = -1
        """``windows_done`` of the newest checkpoint begun; -1: none, or the last one failed."""
        self.retry_save_at: int | None = None
        self.retry_is_due = False
        """A save that failed is to be tried again after this very window: rank 0 knows, and all are told."""
        self.samples = len(self.data.train)
        self.total = windows_total(self.samples, self.train.batch_size, self.train.epochs, self.train.steps)
        trackers: list[str] = [*self.train.trackers] if self.ranks.is_first else []
        self.trackers = make_trackers(
            trackers, run.path, flat_config(msgspec.to_builtins(plan.profile)), journal.note
        )
        journal.listener = self.trackers.take
        self.pulse = Pulse(Watchdog(run.stacks / dump_name(self.ranks.rank)), journal)
        self.updating = False
        """An update is being made: some weights may have it, some not."""

    def _build(self) -> None:
        """Make the model, settle what of it moves, place it, and begin a state for it."""
        plan = self.plan
        model, self.new_weights, strategy = built_together(
            plan, self.data, self.ranks, self.stop.own, self.journal.note
        )
        self.freeze = FreezePlan(model, self.train.freeze)
        self.left_out = still_names(model)
        """Weights that no update moves: they are in no checkpoint."""
        sha256: str = self.ranks.told(base_hash(model, self.left_out) if self.ranks.is_first else "")
        placed = place_model(model, plan, self.run, self.journal.note, self.ranks, strategy)
        self.engine, self.optimizer = make_engine(placed, plan, self.journal.note)
        self.state = TrainState(
            plan_digest=plan.digest,
            **conditions(self.threads, self.engine.device, self.ranks.size, strategy),
            micro_batch_size=self.settings.micro_batch_size,
            eval_batch_size=self.train.eval_batch_size,
            gradient_checkpointing=recomputes(plan.profile),
            base=base_name(plan, model) if sha256 else "",
            base_sha256=sha256,
        )

    # -- saved ---------------------------------------------------------------------------------------------------
    def save(self, reason: str) -> None:
        """Begin a checkpoint of this very window, unless there is one. Rank 0 writes it."""
        if self.ranks.decided(self.saved_at == self.state.windows_done):
            return
        self.saved_at, self.retry_save_at = self.state.windows_done, None
        self.state.scaler = self.engine.scaler_state()
        first = self.ranks.is_first
        if first or self.engine.placed.in_parts:
            copy = take_copy(self.state, self.engine.bare_model, self.optimizer, self.left_out, keep=first)
            if first:
                self.saver.start(copy, reason)

    def save_now(self, reason: str) -> bool:
        """Save and wait; return whether there is a good checkpoint of this window."""
        self.wait_for_saves()
        self.save(reason)
        self.wait_for_saves()
        return self.ranks.decided(self.saved_at == self.state.windows_done)

    def wait_for_saves(self) -> None:
        """Wait until rank 0 has written what it began to."""
        self.ranks.wait_for(self.saver.wait, everywhere=False)
        self.say_saves()

    def say_saves(self) -> None:
        """Tell how saves ended; one that failed is tried again soon.

        Raises:
            InputError: it failed because the run directory was removed: nothing that is trained from here on could be kept.
        """
        for last in self.saver.results():
            if last.error and self.journal.is_deleted and not self.run.path.exists():
                raise InputError(
                    t("{path} was removed: nothing of this run can be kept any more", path=str(self.run.path))
                )
            if last.error:
                self.saved_at, self.retry_save_at = -1, self.state.windows_done + RETRY_SAVE_AFTER
                text = t(
                    "the checkpoint of step {step} was not written: {why} ({free} bytes free, {needed} needed); "
                    "training goes on, the checkpoint before it stays",
                    step=last.window,
                    why=last.error,
                    free=last.free_bytes,
                    needed=last.needed_bytes,
                )
                self.journal.note("warn", text, last.window)
            else:
                self.journal.write("checkpoint", last.window, path=last.path, seconds=last.seconds, bytes=last.bytes,
                                   reason=last.reason)  # fmt: skip

    # -- loaded --------------------------------------------------------------------------------------------------
    def resume(self, approximate: bool) -> None:
        """Continue from the newest checkpoint that is as it was written; every bad one is named.

        Raises:
            InputError: it cannot be continued exactly, and nobody said that it need not be.
        """
        folder = self.newest_good()
        if folder is None:
            self.journal.note(
                "warn", t("there is no checkpoint to continue from: the run begins again at step 0")
            )
            return
        saved = self.ranks.told(read_state(folder) if self.ranks.is_first else None)
        accepted = refuse_or_accept(saved, self.state, approximate)
        if accepted is not None:
            self.journal.note("warn", accepted)
        self.load(folder, saved)
        if saved.gradient_checkpointing and not recomputes(self.plan.profile):
            checkpoint_activations(self.engine.bare_model)

    def load(self, folder: Path, saved: TrainState) -> None:
        """Put a checkpoint's weights, moments and position in place of what is there."""
        self.load_model(folder)
        load_optimizer(folder if self.ranks.is_first else None, self.optimizer, self.ranks)
        self.engine.load_scaler_state(saved.scaler)
        self.state = saved
        self.saved_at = saved.windows_done

    def load_model(self, folder: Path) -> None:
        """Put the weights of rank 0's checkpoint in place on all ranks."""
        self.load_weights(lambda: whole_tensors(folder))

    def load_weights(self, whole: Callable[[], dict[str, torch.Tensor]]) -> None:
        """Put the weights that ``whole`` returns on rank 0, but for those that never move, in place on all ranks."""
        if self.ranks.size == 1:
            put_weights(whole(), self.engine.bare_model, self.left_out)
        else:
            tensors: dict[str, torch.Tensor] = {}
            self.ranks.wait_for(lambda: tensors.update(whole()), everywhere=False)
            share_weights(tensors, self.engine.bare_model, self.left_out, self.ranks)
        weights_changed(self.optimizer)

    def newest_good(self) -> Path | None:
        """Return rank 0's newest checkpoint that is as it was written."""
        found: Path | None = self.ranks.told(
            newest_good(self.run, self.say_bad) if self.ranks.is_first else None
        )
        return found

    def say_bad(self, bad: BadCheckpoint) -> None:
        self.saver.damaged.add(bad.window)
        self.journal.note("warn", t("{path} is damaged and not used: {why}", path=bad.path, why=bad.why))
