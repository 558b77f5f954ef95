"""What a run computed, as hashes: parameters, optimizer state, random state and batches, for its first windows.

Asked for by ``DOCTOR_PROOF_STEPS`` in the plan's environment; without it nothing here costs anything. Two runs of one plan
that did the same write the same lines into ``RUN/proof.jsonl``; the first line and field that differ say where they parted.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy
import torch

from runner.optim import parameter_names
from runner.plan import Plan
from runner.rundir import RunDir

VARIABLE = "DOCTOR_PROOF_STEPS"
TRACE = "proof.jsonl"


class Proof:
    """Follows the first windows of a run and writes one line for each; then :attr:`is_complete`."""

    def __init__(self, plan: Plan, run: RunDir, model: Any, rank: int = 0) -> None:
        self.windows = int(plan.environment.get(VARIABLE, "0") or 0)
        self._path: Path = run.path / (f"proof-{rank}.jsonl" if rank else TRACE)
        self._model = model
        self._line: dict[str, Any] = {}
        self._written = 0
        self._init = fingerprints(model.state_dict()) if self.windows else {}

    @property
    def is_complete(self) -> bool:
        return 0 < self.windows <= self._written

    def window_begins(self, window: int, micro_batches: Sequence[Mapping[str, Any]]) -> None:
        """Take down what the window starts from: the batches, and the random state that dropout will draw from."""
        if not self.windows:
            return
        batches = {
            f"{index}.{name}": value
            for index, batch in enumerate(micro_batches)
            for name, value in batch.items()
        }
        self._line = {
            "window": window,
            "data": fingerprints(batches),
            "random": fingerprints(random_states()),
        }
        if self._init:
            self._line["init"] = self._init

    def gradients(self, loss: float) -> None:
        """Take down what forward and backward gave: the gradients after clipping, and the loss."""
        if self.windows:
            found = ((name, parameter.grad) for name, parameter in self._model.named_parameters())
            self._line["gradients"] = fingerprints({name: grad for name, grad in found if grad is not None})
            self._line["loss"] = float(loss).hex()

    def window_ends(self, optimizer: Any) -> None:
        """Take down what the update made, and write the window's line."""
        if not self.windows or self.is_complete:
            return
        self._line["parameters"] = fingerprints(self._model.state_dict())
        self._line["optimizer"] = fingerprints(moments(optimizer))
        with open(self._path, "ab") as file:
            file.write(msgspec.json.encode(self._line) + b"\n")
        self._written += 1
        self._init = {}


def fingerprints(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Return a short hash for each tensor, in name order: of its name, dtype, shape and raw bytes."""
    return {name: fingerprint(name, tensors[name]) for name in sorted(tensors)}


def fingerprint(name: str, value: Any) -> str:
    tensor = value if torch.is_tensor(value) else torch.as_tensor(value)
    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    digest = hashlib.sha256(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
    digest.update(memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else b"")
    return digest.hexdigest()[:32]


def moments(optimizer: Any) -> dict[str, Any]:
    """Return the optimizer's state by parameter and key: ``layer.weight|exp_avg``."""
    names = parameter_names(optimizer)
    state = optimizer.state_dict()["state"]
    return {
        f"{names[index]}|{key}": value for index, values in state.items() for key, value in values.items()
    }


def random_states() -> dict[str, Any]:
    """Return the state of every generator that a step may draw from, as tensors."""
    numpy_state: Any = numpy.random.get_state()
    states = {
        "torch": torch.get_rng_state(),
        "numpy": _bytes(numpy_state[1].tobytes() + repr(numpy_state[2:]).encode()),
        "python": _bytes(repr(random.getstate()).encode()),
    }
    cuda: Iterable[Any] = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ()
    return states | {f"cuda-{index}": state for index, state in enumerate(cuda)}


def _bytes(content: bytes) -> torch.Tensor:
    return torch.tensor(list(content), dtype=torch.uint8)
