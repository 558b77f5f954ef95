"""What a checkpoint holds: taken as a copy, read with proof. safetensors and JSON only: nothing is unpickled.

Weights that stand still for good (a frozen trunk, what adapters sit on) are not in it: they are opened again from where
they came, and compared by their hash (:mod:`runner.base`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch

from runner.deepspeed_moments import ZeroMoments
from runner.durable import what_is_wrong
from runner.optim import parameter_names
from runner.ranks import Ranks
from runner.rundir import RunDir
from runner.sharded import own_part, whole
from runner.strategy_choice import IN_PARTS
from runner.train_state import TrainState

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


class Copy(msgspec.Struct):
    """A run at one instant, detached from it: CPU tensors that later updates do not touch."""

    state: TrainState
    model: dict[str, torch.Tensor]
    optimizer: dict[str, torch.Tensor]


def take_copy(
    state: TrainState,
    model: torch.nn.Module,
    optimizer: Any,
    left_out: Collection[str] = (),
    keep: bool = True,
) -> Copy:
    """Return the run as it is now, without the weights named in ``left_out``.

    Of a model that is cut into parts all ranks call this, and those without ``keep`` get nothing of it.
    """
    own = msgspec.json.decode(msgspec.json.encode(state), type=TrainState)
    weights, own.aliases = take_weights(model, left_out, keep, in_parts=state.strategy in IN_PARTS)
    return Copy(own, weights, {joined: _cpu_copy(value, keep) for joined, value in moments_of(optimizer)})


def moments_of(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the optimizer's state by parameter and key, ``layer.weight|exp_avg``, one after another."""
    if isinstance(optimizer, ZeroMoments):
        yield from optimizer.whole_moments()
        return
    names = parameter_names(optimizer)
    for index, values in optimizer.state_dict()["state"].items():
        for key, value in values.items():
            yield f"{names[index]}|{key}", value


def take_weights(
    model: torch.nn.Module, left_out: Collection[str], keep: bool, in_parts: bool
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return CPU copies of the distinct weights, whole, and ``{other name: name kept}``; as :func:`take_copy`."""
    held = {name: one for name, one in model.state_dict(keep_vars=True).items() if name not in left_out}
    tensors, aliases = untied_parts(held, model) if in_parts else untied(held)
    return {name: _cpu_copy(tensor, keep) for name, tensor in tensors.items()}, aliases


def _cpu_copy(tensor: torch.Tensor, keep: bool) -> torch.Tensor:
    with torch.no_grad():
        full = whole(tensor).detach()
    return full.to("cpu", copy=True).contiguous() if keep else torch.empty(0)


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


def untied_parts(
    tensors: dict[str, torch.Tensor], model: torch.nn.Module
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """As :func:`untied`, of a model cut into parts: a rank's part of a weight may be empty, so the parameters themselves
    are asked whether they are one."""
    first: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name in tensors and first.setdefault(id(parameter), name) != name:
            aliases[name] = first[id(parameter)]
    return {name: tensor for name, tensor in tensors.items() if name not in aliases}, aliases


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


class BadCheckpoint(msgspec.Struct, frozen=True):
    path: str
    why: str
    window: int = 0


def newest_good(run: RunDir, bad: Callable[[BadCheckpoint], None]) -> Path | None:
    """Return the newest checkpoint that is as it was written; every newer one that is not is handed to
    ``bad``."""
    for window, folder in checkpoint_folders(run):
        wrong = what_is_wrong(folder)
        if not wrong:
            return folder
        bad(BadCheckpoint(str(folder), wrong, window))
    return None


def read_state(folder: Path) -> TrainState:
    return msgspec.json.decode((folder / STATE).read_bytes(), type=TrainState)


def load_model(folder: Path, model: torch.nn.Module, left_out: Collection[str] = ()) -> None:
    """Put the checkpoint's weights into ``model``, tied ones under all their names; those in ``left_out`` may be missing.

    Raises:
        RuntimeError: it holds other weights than the model has.
    """
    put_weights(whole_tensors(folder), model, left_out)


def whole_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """Return a checkpoint's weights, tied ones under all their names."""
    tensors = safetensors.torch.load_file(folder / MODEL, device="cpu")
    for name, kept in read_state(folder).aliases.items():
        tensors[name] = tensors[kept]
    return dict(tensors)


def put_weights(
    tensors: dict[str, torch.Tensor], model: torch.nn.Module, left_out: Collection[str] = ()
) -> None:
    """Copy ``tensors`` into ``model``. Raises RuntimeError where names beyond ``left_out`` are missing, or unknown."""
    missing, unknown = model.load_state_dict(tensors, strict=False)
    wrong = [*(name for name in missing if name not in left_out), *unknown]
    if wrong:
        raise RuntimeError(f"the weights are not those of this model: {', '.join(wrong[:5])}")


def load_optimizer(folder: Path | None, optimizer: Any, ranks: Ranks | None = None) -> None:
    """Put the checkpoint's moments into ``optimizer``, parameter by parameter; those it has are let go of first, so that
    memory does not double. Of several ranks the first has the folder, and tells the others."""
    optimizer.state.clear()
    found = _moments(folder) if folder is not None else iter(())
    if ranks is not None and ranks.size > 1:
        found = shared_moments(found, ranks)
    if isinstance(optimizer, ZeroMoments):
        optimizer.put_moments(found)
        return
    names = {name: index for index, name in enumerate(parameter_names(optimizer))}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for name, key, tensor in found:
        state.setdefault(names[name], {})[key] = own_part(tensor, parameters[names[name]])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def shared_moments(
    own: Iterator[tuple[str, str, torch.Tensor]], ranks: Ranks
) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Yield rank 0's moments on every rank, one after another."""
    while True:
        found = next(own, None) if ranks.is_first else None
        told = ranks.told(None if found is None else (*found[:2], found[2].shape, found[2].dtype))
        if told is None:
            return
        name, key, shape, dtype = told
        tensor = torch.empty(shape, dtype=dtype) if found is None else found[2]
        ranks.fill(tensor)
        yield name, key, tensor


def _moments(folder: Path) -> Iterator[tuple[str, str, torch.Tensor]]:
    with safetensors.safe_open(str(folder / OPTIMIZER), framework="pt", device="cpu") as file:
        for joined in file.keys():  # noqa: SIM118 (not a mapping)
            name, _, key = joined.rpartition("|")
            yield name, key, file.get_tensor(joined)
