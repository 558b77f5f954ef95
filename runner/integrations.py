"""A transformers Trainer that tells the doctor what it does: ``Trainer(...,
callbacks=[DoctorCallback()])``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from runner.recording import Recorder


class DoctorCallback(transformers.TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Writes the run's events; a loss that is no number is written as such.

    Trainer replaces a NaN by the mean before it and then logs 0.0; that filter is switched off.
    """

    def __init__(self, run_dir: Path | str | None = None) -> None:
        self.recorder = Recorder(run_dir)
        self._step_logged = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        args.logging_nan_inf_filter = False
        model = kwargs.get("model")
        self._step_logged = state.global_step
        resumed = {"resumed_from_step": state.global_step} if state.global_step else {}
        self.recorder.begin(
            device=str(args.device),
            precision="bf16" if args.bf16 else "fp16" if args.fp16 else "fp32",
            steps_total=state.max_steps,
            epochs=args.num_train_epochs,
            model=type(model).__name__,
            torch=str(torch.__version__),
            parameters=sum(parameter.numel() for parameter in model.parameters())
            if model is not None
            else None,
            **resumed,
        )

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        if not logs or "loss" not in logs:
            return
        steps = state.global_step - self._step_logged
        self._step_logged = state.global_step
        samples = steps * args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        self.recorder.step(
            state.global_step,
            loss=logs["loss"],
            lr=logs.get("learning_rate"),
            grad_norm=logs.get("grad_norm"),
            samples=samples,
            epoch=logs.get("epoch"),
        )

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        named = {name.removeprefix("eval_"): value for name, value in (metrics or {}).items()}
        seconds = {"seconds": named.pop("runtime")} if "runtime" in named else {}
        rates = ("samples_per_second", "steps_per_second", "epoch")
        self.recorder.evaluation(
            state.global_step,
            **{name: value for name, value in named.items() if name not in rates},
            **seconds,
        )

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        path = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.recorder.write("checkpoint", state.global_step, path=str(path), reason="interval")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.recorder.finish("completed", state.global_step, exit_code=0)
