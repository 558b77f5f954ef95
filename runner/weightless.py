"""A model without its weights, as all ranks but the first build one that is cut into parts: whole, it would lie in the host's
memory once a process.

Parameters are on torch's meta device, buffers (positions, frequencies) are real. The first rank has the weights and sends each
rank its part (:mod:`runner.sharded`).
"""

from __future__ import annotations

from typing import Any

import torch

Layout = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[str]]
"""Parameters with whom they are one, shapes, and whether they are trained; buffers; the classes of all modules."""


def layout_of(model: torch.nn.Module) -> Layout:
    """Return everything of a model but its numbers: two with the same layout can be filled with the same weights."""
    first: dict[int, str] = {}
    parameters = [
        (name, first.setdefault(id(one), name), tuple(one.shape), str(one.dtype), one.requires_grad)
        for name, one in model.named_parameters(remove_duplicate=False)
    ]
    buffers = [(name, tuple(one.shape), str(one.dtype)) for name, one in model.named_buffers()]
    return parameters, buffers, [type(module).__name__ for module in model.modules()]


def take_weights_out(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return a model's weights, tied ones under their first name; its parameters are on the meta device afterwards."""
    held = {name: one.detach() for name, one in model.named_parameters()}
    # The parameter is kept beside its twin: a freed object's id would be given again.
    twins: dict[int, tuple[torch.nn.Parameter, torch.nn.Parameter]] = {}
    for module in model.modules():
        for name, one in module._parameters.items():
            if one is None:
                continue
            if id(one) not in twins:
                twins[id(one)] = (one, torch.nn.Parameter(one.detach().to("meta"), one.requires_grad))
            module._parameters[name] = twins[id(one)][1]
    return held


def make_room(model: torch.nn.Module, device: torch.device) -> None:
    """Give every parameter on the meta device memory on ``device``; what stands in it is nothing yet."""
    model._apply(lambda one: torch.empty_like(one, device=device) if one.device.type == "meta" else one)
