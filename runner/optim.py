"""AdamW over two groups of parameters: weight matrices decay, biases, norms and other vectors do not."""

from __future__ import annotations

from typing import Any

import torch

from runner.offload import HostAdamW
from runner.profile import TrainSection


def named_groups(model: torch.nn.Module) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Return the trainable parameters as (decaying, not decaying), each once, tied ones under their first
    name."""
    trainable = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    matrices = [(name, parameter) for name, parameter in trainable if parameter.ndim >= 2]
    vectors = [(name, parameter) for name, parameter in trainable if parameter.ndim < 2]
    return matrices, vectors


def make_optimizer(
    model: torch.nn.Module, train: TrainSection, fused: bool, on_host: bool = False
) -> torch.optim.AdamW:
    """Return AdamW; the names of its parameters, in its own order, stand in ``param_groups[i]["names"]``.

    ``on_host``: its state lies in the host's memory, wherever the parameters do.
    """
    matrices, vectors = named_groups(model)
    groups = []
    for named, decay in ((matrices, train.weight_decay), (vectors, 0.0)):
        if named:
            parameters = [parameter for _, parameter in named]
            groups.append({"params": parameters, "weight_decay": decay, "names": [name for name, _ in named]})
    kind = HostAdamW if on_host else torch.optim.AdamW
    return kind(groups, lr=train.lr, betas=train.betas, eps=train.epsilon, fused=fused)


def set_lr(optimizer: Any, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr


def parameter_names(optimizer: Any) -> list[str]:
    """Return the names of the optimizer's parameters, in the order of its state."""
    return [name for group in optimizer.param_groups for name in group["names"]]
