"""One model cut into parts over several processes by torch's FSDP2: weights, gradients and moments lie once, not in each.

A block's weights are put together for its passes and let go after. What is saved is whole again: the files of a run are the
same whatever it was trained with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor

from runner.deepspeed_parts import gathered, is_zero_part, scatter
from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.text import t

try:
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
except ImportError:  # before torch 2.6
    fully_shard = None

_LOWER = {"bf16": torch.bfloat16, "fp16": torch.float16}


def sharded(model: Any, device: torch.device, ranks: Ranks, plan: Plan) -> Any:
    """Cut ``model`` into parts in place: each block by itself, the rest together.

    Raises:
        InputError: the plan asks for what does not go with it, or this torch cannot.
    """
    _refuse(plan)
    mesh = init_device_mesh(device.type, (ranks.size,))
    lower = _LOWER.get(plan.settings.precision)
    # Without a card they lie there already, and the policy asks for one.
    on_host = plan.settings.offload == "parameters" and device.type == "cuda"
    options: dict[str, Any] = {
        "mesh": mesh,
        # What crosses between cards is half as wide; gradients are added up in fp32.
        "mp_policy": MixedPrecisionPolicy(param_dtype=lower, reduce_dtype=torch.float32 if lower else None),
        "offload_policy": CPUOffloadPolicy() if on_host else OffloadPolicy(),
    }
    for block in blocks_of(model):
        fully_shard(block, **options)
    fully_shard(model, **options)
    for buffer in model.buffers():
        buffer.data = buffer.data.to(device)
    return model


def _refuse(plan: Plan) -> None:
    if fully_shard is None:
        raise InputError(t("parallel.strategy = \"fsdp\" needs torch 2.6 or newer (here: {version})", version=str(torch.__version__)))  # fmt: skip
    asked = {
        "train.compile": bool(plan.settings.compile),
        'train.offload = "optimizer" (take "parameters")': plan.settings.offload == "optimizer",
    }
    found = [name for name, is_asked in asked.items() if is_asked]
    if found:
        raise InputError(t("{names}: not with a model that is cut into parts (fsdp); leave it out, or take parallel.strategy = \"ddp\"",
                           names=", ".join(found)))  # fmt: skip


def blocks_of(model: Any) -> list[Any]:
    """Return the repeated layers of a model of transformers, outermost only."""
    found: list[Any] = []
    inside: set[int] = set()
    for module in model.modules():
        if id(module) in inside or not any(
            kind.__name__ == "GradientCheckpointingLayer" for kind in type(module).__mro__
        ):
            continue
        found.append(module)
        inside.update(id(part) for part in module.modules())
    return found


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor put together from the parts of all ranks, who all call this."""
    if isinstance(tensor, DTensor):
        return tensor.full_tensor()
    return gathered(tensor) if is_zero_part(tensor) else tensor


def whole_shape(tensor: Any) -> torch.Size:
    """Return the shape that :func:`whole` would give."""
    shape: torch.Size = tensor.ds_shape if is_zero_part(tensor) else tensor.shape
    return shape


def own_part(full: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a whole tensor that every rank holds, cut as ``like`` is."""
    if not isinstance(like, DTensor) or full.shape != like.shape:
        return full
    return distribute_tensor(full.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def put(full: torch.Tensor, place: torch.Tensor) -> None:
    """Overwrite ``place``, whole or in parts, with a tensor that every rank holds."""
    with torch.no_grad():
        if isinstance(place, DTensor):
            place.to_local().copy_(own_part(full, place).to_local())
        elif is_zero_part(place):
            scatter(full, place)
        else:
            place.copy_(full)


def put_parts(tensors: Mapping[str, torch.Tensor], model: torch.nn.Module) -> None:
    """Overwrite a model's weights, whole or in parts, with tensors by name that every rank holds."""
    places = model.state_dict(
        keep_vars=True
    )  # what DeepSpeed knows of a weight hangs on the parameter itself
    for name, full in tensors.items():
        put(full, places[name])
