"""A transformers Trainer that tells the doctor what it does: ``Trainer(..., callbacks=[DoctorCallback()])``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from runner.raw_losses import RawLosses
from runner.recording import Recorder, bytes_in, never_raises
from runner.trainer_parts import count_parameters

_RATES = ("samples_per_second", "steps_per_second", "epoch", "model_preparation_time", "jit_compilation_time")


class DoctorCallback(transformers.TrainerCallback):
    """Writes the run's events; a loss that is no number is written as such, and every one is counted.

    Trainer replaces a NaN by the mean before it and then logs 0.0; that filter is switched off.
    """

    def __init__(self, run_dir: Path | str | None = None) -> None:
        self.recorder = Recorder(run_dir)
        self._losses = RawLosses()
        self._step_logged = 0

    @never_raises
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.recorder.is_open:
            return
        args.logging_nan_inf_filter = False
        model = kwargs.get("model")
        if not getattr(args, "torch_compile", False):  # a hook inside a compiled model would break its graph
            self._losses.watch(model)
        self._step_logged = state.global_step
        resumed = {"resumed_from_step": state.global_step} if state.global_step else {}
        self.recorder.begin(
            device=str(args.device),
            precision="bf16" if args.bf16 else "fp16" if args.fp16 else "fp32",
            steps_total=state.max_steps,
            epochs=args.num_train_epochs,
            model=type(model).__name__,
            torch=str(torch.__version__),
            parameters=count_parameters(model),
            **resumed,
        )

    @never_raises
    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        if not logs or "loss" not in logs:
            return
        steps = state.global_step - self._step_logged
        self._step_logged = state.global_step
        samples = steps * args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        bad = self._losses.taken()
        self.recorder.step(
            state.global_step,
            loss=logs["loss"],
            lr=logs.get("learning_rate"),
            grad_norm=logs.get("grad_norm"),
            samples=samples,
            epoch=logs.get("epoch"),
            **({} if bad is None else {"non_finite": bad}),
        )

    @never_raises
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        named = {name.removeprefix("eval_"): value for name, value in (metrics or {}).items()}
        seconds = {"seconds": named.pop("runtime")} if "runtime" in named else {}
        rows = rows_of(kwargs.get("eval_dataloader"))
        self.recorder.evaluation(
            state.global_step,
            **{name: value for name, value in named.items() if name not in _RATES},
            **seconds,
            **({} if rows is None else {"samples": rows}),
        )

    @never_raises
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        path = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.recorder.write(
            "checkpoint", state.global_step, path=str(path), reason="interval", bytes=bytes_in(path)
        )

    @never_raises
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._losses.stop()
        self.recorder.finish("completed", state.global_step, exit_code=0)


def rows_of(loader: Any) -> int | None:
    """Return how many rows an evaluation reads; None: a stream does not say."""
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError):
        return None
