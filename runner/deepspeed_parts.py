"""What a rank holds under DeepSpeed's ZeRO: its part of the weights it updates, and of the gradients, where each stage
keeps them. The names are those of DeepSpeed 0.16 to 0.19.
"""

from __future__ import annotations

from typing import Any

import torch


def is_stage_3(zero: Any) -> bool:
    return hasattr(zero, "fp32_partitioned_groups_flat")


def is_on_host(zero: Any) -> bool:
    """Return whether the optimizer's state, and with it the summed gradients, lie in the host's memory."""
    return bool(zero.offload_optimizer if is_stage_3(zero) else zero.cpu_offload)


def flat_parts(zero: Any) -> list[torch.Tensor]:
    """Return this rank's parts of the weights as the optimizer has them: one a group, padded with zeros."""
    return list(
        zero.fp32_partitioned_groups_flat if is_stage_3(zero) else zero.single_partition_of_fp32_groups
    )


def gradient_parts(zero: Any) -> list[torch.Tensor]:
    """Return this rank's parts of the gradients, summed over the ranks; padding is zero."""
    if is_on_host(zero):
        found = [part.grad for part in flat_parts(zero) if part.grad is not None]
    else:
        found = [part for parts in zero.averaged_gradients.values() if parts is not None for part in parts]
    return [part for part in found if part.numel()]


def forget_gradients(zero: Any) -> None:
    """Leave nothing of a window's gradients: a parameter that the next one does not use would meet them again."""
    zero.zero_grad(set_to_none=True)
    if is_on_host(zero):
        zero.reset_cpu_buffers()
        for part in flat_parts(zero):
            if part.grad is not None:
                part.grad.zero_()
    for held in (zero.averaged_gradients, getattr(zero, "all_grad_tensors", {})):
        for group in held:
            held[group] = None
    if is_stage_3(zero):
        zero.grad_partitions_flat_buffer.zero_()
    else:
        zero.micro_step_id = -1


def is_zero_part(tensor: torch.Tensor) -> bool:
    """Return whether this is a weight that stage 3 has cut into parts."""
    return hasattr(tensor, "ds_id")


def gathered(part: Any) -> torch.Tensor:
    """Return a copy of a weight put together from the parts of all ranks, who all call this."""
    from deepspeed.runtime.zero import GatheredParameters

    with GatheredParameters([part]):
        found: torch.Tensor = part.data.clone()
    return found


def scatter(full: torch.Tensor, part: Any) -> None:
    """Overwrite a weight that is cut into parts with a tensor that every rank holds; all ranks call this."""
    from deepspeed.runtime.zero import GatheredParameters

    with GatheredParameters([part], modifier_rank=0):
        part.data.copy_(full)
