"""One model over several processes: a copy each (DDP), or in parts. What is summed is a sum, never a mean.

Gradients of a window's parts are divided by what the whole window counts, so over the ranks they only have to be added.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from runner.gradient_sum import add_up
from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.refused_together import refused_together
from runner.text import t


def distribute(model: Any, device: torch.device, ranks: Ranks, strategy: str, plan: Plan) -> tuple[Any, Any]:
    """Return ``(model without wrappers, what is called)``; every rank begins with rank 0's weights.

    Raises:
        InputError: the plan asks for what does not go with several processes.
    """
    if refused := refused_together(plan, ranks.size, strategy):
        raise InputError(refused)
    if strategy == "fsdp":
        from runner.sharded import sharded

        return model, sharded(model, device, ranks, plan)
    if strategy == "deepspeed":
        from runner.deepspeed_setup import started

        return model, started(model, device, plan)
    model.to(device)
    return model, replicated(model, device)


def replicated(model: Any, device: torch.device) -> DistributedDataParallel:
    """Return a model whose last backward pass of a window adds the gradients up over the ranks.

    Parameters without a gradient are looked for in each pass: models have some that no task uses, rules free some later,
    and with it the gradients keep the buckets they began with, so that a continued run adds in the same order.
    """
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError(
            t("no parameter of the model is trained: there is nothing to share between processes")
        )
    # torch 2.13 renamed it and warns of the old name.
    names = inspect.signature(DistributedDataParallel).parameters
    own_buffers = {"forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers": False}
    options: Any = {"device_ids": [device] if device.type == "cuda" else None, **own_buffers}
    wrapped = DistributedDataParallel(
        model,
        **options,
        find_unused_parameters=True,
        gradient_as_bucket_view=True,
    )
    wrapped.register_comm_hook(None, add_up)
    return wrapped


@contextlib.contextmanager
def keeping_gradients(wrapped: Any) -> Iterator[None]:
    """Let backward passes leave their gradients in this process. A model cut into parts adds them up each time: whole
    gradients are what there is no room for."""
    if isinstance(wrapped, DistributedDataParallel):
        with wrapped.no_sync():
            yield
    else:
        yield
