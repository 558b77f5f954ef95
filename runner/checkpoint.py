"""Checkpoints: taken as a copy, written beside by a thread while training goes on, sealed, renamed; read with
proof.

safetensors and JSON only: nothing is unpickled. A checkpoint that cannot be written costs a warning, not the
run.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch

from runner.durable import (
    discard_folder,
    publish_folder,
    seal_folder,
    sync_path,
    what_is_wrong,
    write_durably,
)
from runner.optim import parameter_names
from runner.rundir import RunDir

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


class TrainState(msgspec.Struct, kw_only=True):
    """Where a run is, beside its weights and moments. Everything else is a function of the plan and these
    numbers."""

    plan_digest: str
    torch_version: str
    threads: int
    device_name: str
    micro_batch_size: int
    """As learnt from running out of memory, or the plan's."""
    eval_batch_size: int
    gradient_checkpointing: bool
    windows_done: int = 0
    """Windows consumed, skipped ones too: the position in the data."""
    updates_done: int = 0
    """Optimizer updates made: the position in the schedule."""
    samples_done: int = 0
    evaluated_at: int = -1
    """``windows_done`` of the last finished evaluation."""
    best_value: float | None = None
    best_window: int | None = None
    evaluations_since_best: int = 0
    stopped_early: bool = False
    non_finite_windows: int = 0
    bad_windows_in_a_row: int = 0
    scaler: dict[str, float] = {}
    aliases: dict[str, str] = {}
    """Tied weights: name to the name under which the tensor is stored."""
    metrics: dict[str, float] = {}


class Copy(msgspec.Struct):
    """A run at one instant, detached from it: CPU tensors that later updates do not touch."""

    state: TrainState
    model: dict[str, torch.Tensor]
    optimizer: dict[str, torch.Tensor]


def take_copy(state: TrainState, model: torch.nn.Module, optimizer: Any) -> Copy:
    tensors, aliases = untied(model.state_dict())
    own = msgspec.json.decode(msgspec.json.encode(state), type=TrainState)
    own.aliases = aliases
    moments: dict[str, torch.Tensor] = {}
    names = parameter_names(optimizer)
    for index, values in optimizer.state_dict()["state"].items():
        moments.update({f"{names[index]}|{key}": _cpu_copy(value) for key, value in values.items()})
    return Copy(own, {name: _cpu_copy(tensor) for name, tensor in tensors.items()}, moments)


def _cpu_copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()


def untied(tensors: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return the distinct tensors and ``{other name: name kept}`` for those that share their memory whole."""
    first: dict[tuple[int, torch.Size, tuple[int, ...]], str] = {}
    kept: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    for name, tensor in tensors.items():
        key = (tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() and key in first:
            aliases[name] = first[key]
        else:
            first[key] = name
            kept[name] = tensor
    return kept, aliases


class SaveResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one save ended."""

    window: int
    reason: str
    seconds: float
    path: str = ""
    bytes: int = 0
    error: str = ""
    """Empty: the checkpoint is there, whole and verified."""
    needed_bytes: int = 0
    free_bytes: int = 0


class Saver:
    """Writes copies one after another in a thread; asks for the free space first; keeps the last N and the
    best."""

    def __init__(self, run: RunDir, keep_last: int) -> None:
        self.run = run
        self.keep_last = keep_last
        self._thread: threading.Thread | None = None
        self._results: list[SaveResult] = []
        for leftover in (*run.checkpoints.glob(".making-*"), *run.checkpoints.glob(".discarded-*")):
            shutil.rmtree(leftover, ignore_errors=True)

    def start(self, copy: Copy, reason: str) -> None:
        """Begin to write ``copy``; waits for the save before it."""
        self.wait()
        self._thread = threading.Thread(target=self._save, args=(copy, reason), name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def results(self) -> list[SaveResult]:
        """Return what ended since the last call."""
        done, self._results = self._results, []
        return done

    def _save(self, copy: Copy, reason: str) -> None:
        started = time.monotonic()
        window = copy.state.windows_done
        needed = sum(tensor.nbytes for part in (copy.model, copy.optimizer) for tensor in part.values())
        free, path, size, error = 0, "", 0, ""
        try:
            free = shutil.disk_usage(self.run.checkpoints).free
            if free < needed * 1.05 + 2**20:
                raise OSError(28, "not enough free space for a checkpoint")
            path, size = self._write(copy)
            retire(self.run, self.keep_last, copy.state.best_window)
        except (
            Exception
        ) as trouble:  # in a thread nobody would see it; training goes on without this checkpoint
            error = f"{type(trouble).__name__}: {trouble}"
            shutil.rmtree(self._making(window), ignore_errors=True)
        self._results.append(
            SaveResult(
                window=window,
                reason=reason,
                seconds=time.monotonic() - started,
                path=path,
                bytes=size,
                error=error,
                needed_bytes=needed,
                free_bytes=free,
            )
        )

    def _making(self, window: int) -> Path:
        return self.run.checkpoints / f".making-{window:08d}"

    def _write(self, copy: Copy) -> tuple[str, int]:
        making, target = self._making(copy.state.windows_done), self.run.checkpoint(copy.state.windows_done)
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        write_tensors(making / MODEL, copy.model)
        write_tensors(making / OPTIMIZER, copy.optimizer)
        (making / STATE).write_bytes(msgspec.json.format(msgspec.json.encode(copy.state), indent=1))
        size = seal_folder(making)
        if wrong := what_is_wrong(making):
            raise OSError(5, f"what was written cannot be read back: {wrong}")
        publish_folder(making, target)
        pointer = {"path": target.name, "window": copy.state.windows_done}
        write_durably(self.run.checkpoints / "latest.json", msgspec.json.encode(pointer))
        return str(target), size


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Write a safetensors file through plain writes: a full disk is then an OSError, not a crash in a
    mapping."""
    data = safetensors.torch.save(tensors)
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def checkpoint_folders(run: RunDir) -> list[tuple[int, Path]]:
    """Return ``(window, folder)`` of every checkpoint by name, newest first."""
    found = []
    for path in run.checkpoints.glob("step-*"):
        number = path.name.removeprefix("step-")
        if number.isdigit() and path.is_dir():
            found.append((int(number), path))
    return sorted(found, reverse=True)


def retire(run: RunDir, keep_last: int, best_window: int | None) -> None:
    """Remove all but the newest ``keep_last`` and the best; called only after a newer one was verified."""
    for window, folder in checkpoint_folders(run)[keep_last:]:
        if window != best_window:
            discard_folder(folder)
    sync_path(run.checkpoints)


class BadCheckpoint(msgspec.Struct, frozen=True):
    path: str
    why: str


def newest_good(run: RunDir, bad: Callable[[BadCheckpoint], None]) -> Path | None:
    """Return the newest checkpoint that is as it was written; every newer one that is not is handed to
    ``bad``."""
    for _, folder in checkpoint_folders(run):
        wrong = what_is_wrong(folder)
        if not wrong:
            return folder
        bad(BadCheckpoint(str(folder), wrong))
    return None


def read_state(folder: Path) -> TrainState:
    return msgspec.json.decode((folder / STATE).read_bytes(), type=TrainState)


def load_model(folder: Path, model: torch.nn.Module) -> None:
    """Put the checkpoint's weights into ``model``, tied ones under all their names."""
    tensors = safetensors.torch.load_file(folder / MODEL, device="cpu")
    for name, kept in read_state(folder).aliases.items():
        tensors[name] = tensors[kept]
    model.load_state_dict(tensors, strict=True)


def load_optimizer(folder: Path, optimizer: Any) -> None:
    """Put the checkpoint's moments into ``optimizer``, parameter by parameter, so that memory does not
    double."""
    names = {name: index for index, name in enumerate(parameter_names(optimizer))}
    state: dict[int, dict[str, Any]] = {}
    for name, key, tensor in _moments(folder):
        state.setdefault(names[name], {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _moments(folder: Path) -> Iterator[tuple[str, str, torch.Tensor]]:
    with safetensors.safe_open(str(folder / OPTIMIZER), framework="pt", device="cpu") as file:
        for joined in file.keys():  # noqa: SIM118 (not a mapping)
            name, _, key = joined.rpartition("|")
            yield name, key, file.get_tensor(joined)
