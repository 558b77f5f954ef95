"""A Lightning Trainer that tells the doctor what it does: ``Trainer(callbacks=[DoctorLightningCallback()])``.

Works with ``lightning`` and with ``pytorch_lightning``: whichever the script has imported.
"""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import torch

from runner.raw_losses import RawLosses
from runner.recording import Recorder, bytes_in, metric_name, never_raises
from runner.trainer_parts import count_parameters

_HOMES = ("lightning.pytorch", "pytorch_lightning")


def callback_base() -> Any:
    """Return Lightning's own ``Callback``: of the package that the script has imported, else of the one installed.

    Raises:
        ImportError: neither is installed here.
    """
    for name in sorted(_HOMES, key=lambda home: home not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("lightning", "pytorch_lightning"):
                raise
    raise ImportError("DoctorLightningCallback needs lightning or pytorch_lightning in this environment")


class DoctorLightningCallback(callback_base()):  # type: ignore[misc] # Lightning calls every hook of its own class
    """Writes the run's events every ``log_every_n_steps`` steps; between them nothing waits for the device."""

    def __init__(self, run_dir: Path | str | None = None) -> None:
        super().__init__()
        self.recorder = Recorder(run_dir)
        self._losses = RawLosses()
        self._sum: Any = None
        self._batches = 0
        self._step_told = 0
        self._saved_step: int | None = None

    @never_raises
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        total = trainer.estimated_stepping_batches
        self._step_told = trainer.global_step
        resumed = {"resumed_from_step": trainer.global_step} if trainer.global_step else {}
        self.recorder.begin(
            device=str(pl_module.device),
            precision=str(trainer.precision),
            steps_total=int(total) if math.isfinite(total) else None,
            epochs=trainer.max_epochs,
            model=type(pl_module).__name__,
            torch=str(torch.__version__),
            parameters=count_parameters(pl_module),
            **resumed,
        )

    @never_raises
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, *args: Any, **kwargs: Any
    ) -> None:
        self._tell_saved(trainer)
        loss: Any = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if torch.is_tensor(loss):
            loss = loss.detach()
            self._losses.add(loss)
            self._sum = loss if self._sum is None else self._sum + loss
            self._batches += 1
        if trainer.global_step - self._step_told >= max(1, trainer.log_every_n_steps or 1):
            self._tell(trainer)

    def _tell(self, trainer: Any) -> None:
        """Write one step event: the mean loss of the batches since the one before, undivided by the accumulation."""
        mean = None
        if self._sum is not None and self._batches:
            mean = float(self._sum) / self._batches * max(1, trainer.accumulate_grad_batches)
        groups = trainer.optimizers[0].param_groups if trainer.optimizers else [{}]
        bad = self._losses.taken()
        self.recorder.step(
            trainer.global_step,
            loss=mean,
            lr=groups[0].get("lr"),
            grad_norm=gradient_norm_in(trainer.callback_metrics),
            epoch=trainer.current_epoch,
            **({} if bad is None else {"non_finite": bad}),
        )
        self._step_told, self._sum, self._batches = trainer.global_step, None, 0

    @never_raises
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.sanity_checking:
            return
        metrics = evaluation_in(trainer.callback_metrics)
        if metrics:
            self.recorder.evaluation(trainer.global_step, **metrics)

    @never_raises
    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """It is written after this hook, under a name that nobody tells: it is looked for at the next one."""
        self._saved_step = trainer.global_step

    def _tell_saved(self, trainer: Any) -> None:
        step, self._saved_step = self._saved_step, None
        folder = getattr(trainer.checkpoint_callback, "dirpath", None)
        if step is None or not folder:
            return
        files = sorted(Path(folder).glob("*.ckpt"), key=lambda file: file.stat().st_mtime)
        path = files[-1] if files else Path(folder)
        self.recorder.write("checkpoint", step, path=str(path), reason="interval", bytes=bytes_in(path))

    @never_raises
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        outcome = "interrupted" if isinstance(exception, KeyboardInterrupt) else "failed"
        self.recorder.finish(
            outcome, trainer.global_step, error=f"{type(exception).__name__}: {exception}"[:2000]
        )

    @never_raises
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.global_step > self._step_told:
            self._tell(trainer)
        self._tell_saved(trainer)
        self.recorder.finish("completed", trainer.global_step, exit_code=0)


def gradient_norm_in(metrics: dict[str, Any]) -> Any:
    """Return what the script logged as its gradients' norm, if it did: ``grad_norm``, ``grad_2.0_norm_total``."""
    return next(
        (value for name, value in metrics.items() if name in ("grad_norm", "grad_2.0_norm_total")), None
    )


def evaluation_in(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the validation's metrics under their plain names: ``val_loss``, ``val/acc`` -> ``loss``, ``accuracy``."""
    found = {}
    for name, value in metrics.items():
        for prefix in ("val_", "val/", "valid_", "valid/", "validation_", "validation/"):
            if name.startswith(prefix):
                found[metric_name(name.removeprefix(prefix))] = value
    return found
