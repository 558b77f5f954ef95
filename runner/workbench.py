"""What a run in progress holds: its data, model, optimizer and place; how that is saved, loaded and told."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import torch

from runner.build import build_model, checkpoint_activations
from runner.checkpoint import (
    BadCheckpoint,
    Saver,
    TrainState,
    load_model,
    load_optimizer,
    newest_good,
    read_state,
    take_copy,
)
from runner.data import Prepared
from runner.engine import Engine, SplitClock
from runner.freeze import FreezePlan
from runner.inputs import InputError
from runner.journal import Journal
from runner.optim import make_optimizer
from runner.order import windows_total
from runner.plan import Plan
from runner.prepare import prepare_data
from runner.rundir import RunDir
from runner.seed import set_deterministic
from runner.signals import StopRequest
from runner.text import t
from runner.trackers import flat_config, make_trackers

RETRY_SAVE_AFTER = 20
"""Windows after which a checkpoint that could not be written is tried again."""

Batch = dict[str, torch.Tensor]


class Workbench:
    """One run in one process; :class:`runner.trainer.Trainer` works on it."""

    def __init__(self, plan: Plan, run: RunDir, journal: Journal, stop: StopRequest) -> None:
        self.plan, self.run, self.journal, self.stop = plan, run, journal, stop
        self.settings, self.train = plan.settings, plan.profile.train
        self.seed = plan.profile.run.seed
        set_deterministic(self.train.deterministic)
        torch.set_num_threads(self.settings.threads)
        self.data: Prepared = prepare_data(plan, run, journal.note, stop)
        model, self.new_weights = build_model(plan, self.data.task, self.data.tokenizer)
        self.freeze = FreezePlan(model, self.train.freeze)
        self.engine = Engine(model, self.settings)
        self.optimizer = make_optimizer(self.engine.bare_model, self.train, self.settings.fused)
        self.saver = Saver(run, self.train.keep_last)
        self.saved_at = -1
        """``windows_done`` of the newest checkpoint begun; -1: none, or the last one failed."""
        self.retry_save_at: int | None = None
        self.samples = len(self.data.train)
        self.total = windows_total(self.samples, self.train.batch_size, self.train.epochs, self.train.steps)
        self.state = TrainState(
            plan_digest=plan.digest,
            torch_version=str(torch.__version__),
            threads=self.settings.threads,
            device_name=device_name(self.engine.device),
            micro_batch_size=self.settings.micro_batch_size,
            eval_batch_size=self.train.eval_batch_size,
            gradient_checkpointing=plan.profile.model.gradient_checkpointing,
        )
        self.trackers = make_trackers(
            list(self.train.trackers), run.path, flat_config(msgspec.to_builtins(plan.profile)), journal.note
        )
        journal.listener = self.trackers.take
        self._updating = False

    # -- saved ---------------------------------------------------------------------------------------------------
    def _save(self, reason: str) -> None:
        """Begin a checkpoint of this very window, unless there is one."""
        if self.saved_at == self.state.windows_done:
            return
        self.saved_at, self.retry_save_at = self.state.windows_done, None
        self.state.scaler = self.engine.scaler_state()
        self.saver.start(take_copy(self.state, self.engine.bare_model, self.optimizer), reason)

    def _save_now(self, reason: str) -> bool:
        """Save and wait; return whether there is a good checkpoint of this window."""
        self.saver.wait()
        self._say_saves()
        self._save(reason)
        self.saver.wait()
        self._say_saves()
        return self.saved_at == self.state.windows_done

    def _say_saves(self) -> None:
        """Tell how saves ended; one that failed is tried again soon."""
        for last in self.saver.results():
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
    def _resume(self, approximate: bool) -> None:
        """Continue from the newest checkpoint that is as it was written; every bad one is named."""
        folder = newest_good(self.run, self._say_bad)
        if folder is None:
            self.journal.note(
                "warn", t("there is no checkpoint to continue from: the run begins again at step 0")
            )
            return
        saved = read_state(folder)
        self._check_exact(saved, approximate)
        self._load(folder, saved)
        if saved.gradient_checkpointing and not self.plan.profile.model.gradient_checkpointing:
            checkpoint_activations(self.engine.bare_model)

    def _load(self, folder: Path, saved: TrainState) -> None:
        load_model(folder, self.engine.bare_model)
        load_optimizer(folder, self.optimizer)
        self.engine.load_scaler_state(saved.scaler)
        self.state = saved
        self.saved_at = saved.windows_done

    def _say_bad(self, bad: BadCheckpoint) -> None:
        self.journal.note("warn", t("{path} is damaged and not used: {why}", path=bad.path, why=bad.why))

    def _check_exact(self, saved: TrainState, approximate: bool) -> None:
        """Refuse what cannot continue to the bit, unless the person accepts it; then say so."""
        now, differences = self.state, []
        for name in ("plan_digest", "torch_version", "threads", "device_name"):
            if getattr(saved, name) != getattr(now, name):
                differences.append(f"{name}: {getattr(saved, name)} -> {getattr(now, name)}")
        if not differences:
            return
        shown = "; ".join(differences)
        if not approximate or saved.plan_digest != now.plan_digest:
            raise InputError(t("cannot continue to the bit here ({differences}); --approximate continues anyway",
                               differences=shown))  # fmt: skip
        self.journal.note("warn", t("continued approximately: {differences}", differences=shown))
        for name in ("torch_version", "threads", "device_name"):
            setattr(saved, name, getattr(now, name))

    # -- told ----------------------------------------------------------------------------------------------------
    def _say_started(self, resume: bool) -> None:
        resumed = {"resumed_from_step": self.state.windows_done} if resume else {}
        self.journal.write(
            "run-started",
            self.state.windows_done,
            device=self.state.device_name,
            precision=self.settings.precision,
            steps_total=self.total,
            epochs=self.train.epochs,
            samples_total=self.samples,
            model=model_name(self.plan),
            torch=str(torch.__version__),
            parameters=sum(parameter.numel() for parameter in self.engine.bare_model.parameters()),
            **process_facts(),
            **resumed,
        )
        if self.new_weights and not resume and self.new_weights != ["*"]:
            names = ", ".join(self.new_weights[:6])
            self.journal.note("info", t("new, seeded weights (not pretrained): {names}", names=names))

    def _say_step(
        self,
        micro_batches: list[Batch],
        loss: float,
        norm: float,
        lr: float,
        epoch: int,
        clock: SplitClock,
        updated: bool,
    ) -> None:
        split = clock.finish()
        data: dict[str, Any] = {
            "loss": loss,
            "lr": lr,
            "grad_norm": norm,
            "samples": sum(len(batch["labels"]) for batch in micro_batches),
            "tokens": sum(int(batch["attention_mask"].sum()) for batch in micro_batches),
            "padded_tokens": sum(batch["attention_mask"].numel() for batch in micro_batches),
            "epoch": epoch,
            "seconds": clock.seconds,
            "split": split,
        }
        if not updated:
            data["skipped"] = True
        self.journal.write("step", self.state.windows_done, **data)
        self.journal.progress(self.state.windows_done, self.total, data)


def device_name(device: torch.device) -> str:
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"


def model_name(plan: Plan) -> str:
    model = plan.profile.model
    return model.hub or model.package or model.path or str(model.config.get("model_type", ""))


def process_facts() -> dict[str, Any]:
    return {"pid": os.getpid(), "hostname": socket.gethostname()}
