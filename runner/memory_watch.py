"""The first steps' peak memory, foretold by arithmetic for the very shapes that came, and measured; both are told.

On a GPU torch's own count of its tensors is taken; on a CPU the process's high-water mark beyond what it held before the
first step, and what it held then of the model. Where the two part, a warning comes at once: the longest samples come later.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import msgspec
import torch

from runner.child import memory_guard
from runner.estimate_outside import CPU_HELD_SHARE, CPU_HELD_SHARE_HIGH
from runner.foretelling import NotForetold, foretold_bytes
from runner.offload import HostAdamW
from runner.step_request import worst_shape
from runner.text import Text, t
from runner.workbench import Batch, Workbench

PARTED = 0.15
CPU_RANGE = (1 / (1 + CPU_HELD_SHARE), (1 + CPU_HELD_SHARE_HIGH) / (1 + CPU_HELD_SHARE))
"""What the C library alone may make of what was foretold: on a CPU the 15 % are counted from there."""
LEAST_APART_BYTES = {"cuda": 64 << 20, "cpu": 256 << 20}
"""Below this it is the allocator's and the libraries' own doing, not the model's."""
FIRST_LOOK = 2
"""Windows: the optimizer's state exists from the second forward on."""
GROWN = 1.25
"""Looked at again when a micro-batch came with so many times the tokens."""
LOOKS = 5
MIB = 1 << 20


class Taken(NamedTuple):
    tensor_bytes: int
    process_bytes: int


class MemoryWatch:
    """Follows one run from before its first window on."""

    def __init__(self, bench: Workbench) -> None:
        self._bench, self._device = bench, bench.engine.device.type
        self._shape = self._told_shape = (0, 0)
        self._windows, self._looks = 0, 0
        self._held = _model_bytes(bench)
        if self._device == "cuda":
            torch.cuda.reset_peak_memory_stats(bench.engine.device)
        else:
            _touch(bench)
            self._exact = memory_guard.begin_anew()
            self._before = memory_guard.status_bytes("VmRSS")

    def window_done(self, micro_batches: list[Batch]) -> None:
        """Take a window in; tell after the second, and again when much larger micro-batches came."""
        if self._looks >= LOOKS:
            return
        self._windows += 1
        shapes = [(len(batch["labels"]), int(batch["attention_mask"].shape[-1])) for batch in micro_batches]
        self._shape = max([self._shape, *shapes], key=lambda shape: shape[0] * shape[1])
        tokens, told = (one[0] * one[1] for one in (self._shape, self._told_shape))
        if self._windows >= FIRST_LOOK and tokens > GROWN * told:
            self._told_shape = self._shape
            self._looks += 1
            self._tell()

    def _tell(self) -> None:
        taken = self._taken()
        if taken is None:
            self._looks = LOOKS
            return
        samples, length = self._shape
        data: dict[str, Any] = {
            "device": self._device, "samples": samples, "length": length, "measured_bytes": taken.tensor_bytes,
            "process_bytes": taken.process_bytes,
        }  # fmt: skip
        try:
            foretold = foretell(self._bench, samples, length)
            worst = foretell(self._bench, *worst_shape(self._bench.plan, self._bench.ranks.size, self._bench.state.micro_batch_size))  # fmt: skip
        except NotForetold as error:
            self._bench.journal.write("memory", self._step, **data, parted=False, why=msgspec.to_builtins(error.text))  # fmt: skip
            return
        parted = have_parted(taken.tensor_bytes, foretold, self._device)
        self._bench.journal.write("memory", self._step, **data, predicted_bytes=foretold, worst_bytes=worst, parted=parted)  # fmt: skip
        if parted:
            text = warning(taken.tensor_bytes, foretold, worst, self._shape, self._bench.train.max_length)
            self._bench.journal.note("warn", text, self._step)

    @property
    def _step(self) -> int:
        return self._bench.state.windows_done

    def _taken(self) -> Taken | None:
        """Return what was taken so far; None: this kernel cannot tell."""
        if self._device == "cuda":
            device = self._bench.engine.device
            return Taken(torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device))
        if not self._exact:
            return None
        most = memory_guard.status_bytes("VmHWM")
        return Taken(self._held + most - self._before, most)


def _model_bytes(bench: Workbench) -> int:
    """Return what of a model and its optimizer is there before the first step."""
    kept = list(bench.engine.bare_model.parameters())
    if isinstance(bench.optimizer, HostAdamW):
        kept += [master for _, master in bench.optimizer.pairs]
    for state in bench.optimizer.state.values():
        kept += [one for one in state.values() if isinstance(one, torch.Tensor)]
    return sum(one.nbytes for one in kept)


def _touch(bench: Workbench) -> None:
    """Read every page of the weights: those of a mapped file that nobody read yet are not counted as held."""
    for parameter in bench.engine.bare_model.parameters():
        parameter.detach().reshape(-1)[::1024].sum()


def foretell(bench: Workbench, samples: int, length: int) -> int:
    """Return the bytes of tensors that a micro-batch of this shape takes at its worst.

    On a CPU with what the C library keeps, which is measured along.

    Raises:
        NotForetold: the architecture, or the way it is trained, is not known to the arithmetic.
    """
    placed = bench.engine.placed
    if placed.in_parts or placed.is_spread or placed.fetches_weights:
        raise NotForetold(t("the model lies on more than one device: its memory is measured, not foretold"))
    device, recomputes = bench.engine.device.type, bench.state.gradient_checkpointing
    found = foretold_bytes(bench.plan, bench.engine.bare_model, samples, length, recomputes, device)
    return round(found * (1 + CPU_HELD_SHARE)) if device == "cpu" else found


def have_parted(measured: int, foretold: int, device: str) -> bool:
    """Are they apart by more than 15 %, and by more than what no model is to blame for?"""
    low, high = CPU_RANGE if device == "cpu" else (1.0, 1.0)
    outside = measured > (1 + PARTED) * high * foretold or measured < (1 - PARTED) * low * foretold
    return outside and abs(measured - foretold) > LEAST_APART_BYTES.get(device, 0)


def warning(measured: int, foretold: int, worst: int, shape: tuple[int, int], max_length: int) -> Text:
    values = {
        "measured": measured // MIB, "foretold": foretold // MIB, "samples": shape[0], "length": shape[1],
        "percent": round(100 * (measured / foretold - 1)), "longest": max_length,
    }  # fmt: skip
    if measured < foretold:
        return t("memory: {measured} MB measured for micro-batches of {samples} x {length} tokens, {foretold} MB foretold ({percent} %): a larger micro-batch may fit; doctor tune finds it", **values)  # fmt: skip
    return t("memory: {measured} MB measured for micro-batches of {samples} x {length} tokens, {foretold} MB foretold (+{percent} %): samples of {longest} tokens may take {worst} MB; doctor tune finds what fits", **values, worst=round(worst * measured / foretold) // MIB)  # fmt: skip


def watch_memory(bench: Workbench) -> MemoryWatch | None:
    """Return the watch of a run; None where this system tells nothing of a process's memory."""
    if bench.engine.placed.in_parts:  # each rank holds another part
        return None
    with contextlib.suppress(OSError, LookupError):
        return MemoryWatch(bench)
    return None
