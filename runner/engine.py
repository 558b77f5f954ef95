"""One forward, backward and update of a placed model. Precision is torch's own autocast and scaler, since every step
between backward and update must be ours to see: unscale, look, clip, step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import time
from typing import Any

import torch

from runner.blocked_attention import attention_in_blocks
from runner.choices import Settings
from runner.parallel import keeping_gradients, replicated
from runner.placement import Placed
from runner.sharded import compile_blocks, uncompile_blocks

LOWEST_SCALE = 1.0
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Engine:
    """A model on its device with its optimizer, in the plan's precision. Weights and moments are fp32."""

    def __init__(self, placed: Placed, settings: Settings) -> None:
        self.placed, self.device = placed, placed.device
        self._compiles = False
        self.model: Any = placed.model
        self.precision = settings.precision
        self.pins = placed.device.type == "cuda" and settings.pin_memory
        """Batches come in page-locked memory."""
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=settings.precision == "fp16")
        self._parameters = [parameter for parameter in placed.bare.parameters() if parameter.requires_grad]

    def agreement(self) -> contextlib.AbstractContextManager[None]:
        """As :meth:`runner.ranks.Ranks.agreement`, for passes. Of a model cut into parts they meet the others throughout,
        so nothing can be agreed on before."""
        return contextlib.nullcontext() if self.placed.in_parts else self.placed.ranks.agreement()

    def update_agreement(self) -> contextlib.AbstractContextManager[None]:
        """As :meth:`agreement`, for updates: each rank makes its own."""
        return self.placed.ranks.agreement()

    def meet_anew(self) -> None:
        """Begin the exchange between ranks afresh: where one broke off after its forward pass, the others would take their
        next backward pass for the one they had announced."""
        if self.placed.strategy != "ddp":
            return
        self.model, self.placed = None, dataclasses.replace(self.placed, model=None)
        gc.collect()  # the old wrapper takes its hooks off the parameters when it goes
        self.placed = dataclasses.replace(self.placed, model=replicated(self.placed.bare, self.device))
        self.compile() if self._compiles else self.go_uncompiled()

    def compile(self) -> None:
        """Have the model compiled by its next pass; of one that torch has cut into parts each block by itself. Shapes are dynamic
        from the start: bucketed batches have many lengths, each of which would compile again."""
        self._compiles = True
        if self.placed.strategy == "fsdp":
            compile_blocks(self.placed.bare)
        else:
            self.model = torch.compile(self.placed.model, dynamic=True)

    def go_uncompiled(self) -> None:
        self._compiles, self.model = False, self.placed.model
        if self.placed.strategy == "fsdp":
            uncompile_blocks(self.placed.bare)

    @property
    def bare_model(self) -> Any:
        """The model without wrappers: what is saved."""
        return self.placed.bare

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.precision == "fp32":
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[Any] = torch.autocast(
            self.device.type, dtype=_DTYPES[self.precision]
        )
        return context

    def attention(self) -> contextlib.AbstractContextManager[Any]:
        """For forward and backward passes: what computes attention where torch has no kernel for it. Compiled code has its own."""
        if self.device.type != "cpu" or self._compiles:
            return contextlib.nullcontext()
        return attention_in_blocks()

    def to_device(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}

    def logits(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        inputs: dict[str, Any] = {
            name: tensor for name, tensor in batch.items() if name not in ("labels", "rows")
        }
        if "position_ids" in inputs:
            # transformers parts packed texts by their positions, but only without a mask and without a cache.
            del inputs["attention_mask"]
            inputs["use_cache"] = False
        with self.autocast(), self.attention():
            return self.model(**inputs).logits  # type: ignore[no-any-return,unused-ignore]

    def keeping_gradients(self) -> contextlib.AbstractContextManager[Any]:
        """For passes whose gradients stay in this process for now: all of a window's but the last."""
        if self.placed.processes == 1:
            return contextlib.nullcontext()
        return keeping_gradients(self.placed.model)

    def without_gradients(self) -> contextlib.AbstractContextManager[Any]:
        """For evaluation. Weights that are fetched or put together for a pass must not be made in inference mode: training meets
        them."""
        made = self.placed.fetches_weights or self.placed.in_parts
        off: contextlib.AbstractContextManager[Any] = torch.no_grad() if made else torch.inference_mode()
        return off

    def backward(self, loss: torch.Tensor) -> None:
        if self.placed.strategy == "fsdp":
            loss = loss * self.placed.processes  # it takes the mean over the ranks where a sum is wanted
        with self.attention():
            self.scaler.scale(loss).backward()

    def gradient_norm(self, optimizer: Any, clip_norm: float) -> torch.Tensor:
        """Unscale the gradients once, clip them together, and return their norm before clipping."""
        self.scaler.unscale_(optimizer)
        limit = clip_norm or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, limit)
        return norm.full_tensor() if self.placed.strategy == "fsdp" else norm  # type: ignore[no-any-return,attr-defined,unused-ignore]

    def update(self, optimizer: Any) -> bool:
        """Make the update; return False where the scaler held it back (a gradient overflowed)."""
        before = self.scaler.get_scale()
        self.scaler.step(optimizer)
        self.scaler.update()
        return not (self.scaler.is_enabled() and self.scaler.get_scale() < before)

    def drop_gradients(self, optimizer: Any) -> None:
        optimizer.zero_grad(set_to_none=True)

    def forget_window(self, optimizer: Any) -> None:
        """Drop a window that is not to count, its gradients and the scaler's record of having unscaled
        them."""
        self.drop_gradients(optimizer)
        if self.scaler.is_enabled():
            self.scaler.update(self.scaler.get_scale())

    def free_memory(self) -> None:
        """Give back what is no longer held, so that the next try finds it."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def scaler_state(self) -> dict[str, float]:
        return {key: float(value) for key, value in self.scaler.state_dict().items()}

    def load_scaler_state(self, state: dict[str, float]) -> None:
        if state and self.scaler.is_enabled():
            whole = {"growth_interval", "_growth_tracker"}
            self.scaler.load_state_dict(
                {key: int(value) if key in whole else value for key, value in state.items()}
            )


class SplitClock:
    """Where the time of one window goes. On a GPU the marks are CUDA events, read when the last has passed."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._marks: list[tuple[str, Any]] = []
        self.started = self.seconds = 0.0

    def start(self) -> None:
        self.started = time.perf_counter()
        self._marks = [("", self._now())]

    def _now(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def lap(self, name: str) -> None:
        """The time since the last mark belongs to ``name``."""
        self._marks.append((name, self._now()))

    def finish(self) -> dict[str, float]:
        """Wait for the device, set ``seconds``, and return the seconds by name."""
        if self._cuda:
            self._marks[-1][1].synchronize()
        self.seconds = time.perf_counter() - self.started
        total: dict[str, float] = {}
        for (_, before), (name, after) in zip(self._marks, self._marks[1:], strict=False):
            seconds = before.elapsed_time(after) / 1000 if self._cuda else after - before
            total[name] = total.get(name, 0.0) + seconds
        return total
