"""One model cut into parts over several processes by torch's FSDP2: weights, gradients and moments lie once, not in each.

A block's weights are put together for its passes and let go after. What is saved is whole again: the files of a run are the
same whatever it was trained with.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor

from runner.deepspeed_parts import gathered, is_zero_part, scatter
from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.text import t
from runner.weightless import make_room, take_weights_out

try:
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
except ImportError:  # before torch 2.6
    fully_shard = None

_LOWER = {"bf16": torch.bfloat16, "fp16": torch.float16}


def sharded(model: Any, device: torch.device, ranks: Ranks, plan: Plan) -> Any:
    """Cut ``model`` into parts in place: each block by itself, the rest together. All ranks hold rank 0's weights afterwards;
    the others may come without any (:mod:`runner.weightless`).

    Raises:
        InputError: the plan asks for what does not go with it, or this torch cannot.
    """
    _refuse()
    weights = take_weights_out(model)
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
    make_room(model, torch.device("cpu") if on_host else device)
    for name, place in model.named_parameters():
        put_from_first(weights.pop(name) if ranks.is_first else None, place, ranks)
    for buffer in model.buffers():
        buffer.data = _first_ones(buffer, ranks).to(device)
    return model


def _first_ones(buffer: torch.Tensor, ranks: Ranks) -> torch.Tensor:
    held = buffer.contiguous()
    ranks.fill(torch.view_as_real(held) if held.is_complex() else held)
    return held


def _refuse() -> None:
    if fully_shard is None:
        raise InputError(t("parallel.strategy = \"fsdp\" needs torch 2.6 or newer (here: {version})", version=str(torch.__version__)))  # fmt: skip


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


def compile_blocks(model: Any) -> None:
    """Have each block compiled by its next pass. What puts its weights together before and lets go of them after stays outside."""
    for block in blocks_of(model) or [model]:
        block.forward = torch.compile(block.forward, dynamic=True)


def uncompile_blocks(model: Any) -> None:
    for block in blocks_of(model) or [model]:
        vars(block).pop("forward", None)


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


def put_from_first(full: torch.Tensor | None, place: torch.Tensor, ranks: Ranks) -> None:
    """Overwrite ``place``, whole or in parts, on all ranks with what rank 0 has whole; the others give None.

    Of a place that torch has cut, no rank but the first ever holds more than its own part.
    """
    with torch.no_grad():
        if isinstance(place, DTensor):
            own = place.to_local()
            part = torch.empty_like(own, device="cpu")
            ranks.hand_out(None if full is None else _parts_of(full, place), part)
            own.copy_(part)
            return
        held = torch.empty(whole_shape(place), dtype=place.dtype) if full is None else full
        ranks.fill(held)
        if is_zero_part(place):
            scatter(held, place)
        else:
            place.copy_(held)


def _parts_of(full: torch.Tensor, place: DTensor) -> list[torch.Tensor]:
    """Return the part of ``full`` that each rank holds of it, in ``place``'s dtype; the last ones may be empty."""
    (placement,) = place.placements
    parts = full.to(place.dtype).chunk(place.device_mesh.size(), placement.dim)
    return [*parts, *(full.narrow(placement.dim, 0, 0) for _ in range(place.device_mesh.size() - len(parts)))]
