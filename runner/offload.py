"""What of a training need not lie on the card: the optimizer's state, or the parameters too. torch's own means alone.

accelerate's ``cpu_offload`` puts copies in place of parameters for a forward pass; their gradients go nowhere, so it
serves for what stands still (:mod:`runner.placement`) and not for what is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class HostAdamW(torch.optim.AdamW):
    """AdamW whose moments and master weights lie in the host's memory, for parameters that lie on a card.

    An update takes the gradients to the host, is made there, and brings the weights back: 8 of 16 bytes a parameter
    less on the card, 8 bytes a parameter over the bus for each update.
    """

    def __init__(self, groups: list[dict[str, Any]], **options: Any) -> None:
        self.pairs: list[tuple[Any, Any]] = []
        for group in groups:
            masters = [
                torch.nn.Parameter(parameter.detach().to("cpu", copy=True)) for parameter in group["params"]
            ]
            self.pairs += zip(group["params"], masters, strict=True)
            group["params"] = masters
        super().__init__(groups, **options)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for parameter, master in self.pairs:
            master.grad = None if parameter.grad is None else parameter.grad.to("cpu")
        super().step()
        for parameter, master in self.pairs:
            if master.grad is not None:
                parameter.copy_(master)
                master.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter, _ in self.pairs:
            parameter.grad = None

    @torch.no_grad()
    def take_weights(self) -> None:
        """Take the masters anew from the parameters, which somebody has just loaded."""
        for parameter, master in self.pairs:
            master.copy_(parameter)


def weights_changed(optimizer: Any) -> None:
    """Tell an optimizer with weights of its own that the model's were loaded."""
    if take_weights := getattr(optimizer, "take_weights", None):
        take_weights()


def stream_parameters(model: torch.nn.Module, device: torch.device) -> None:
    """Keep parameters in the host's memory; each module takes copies to ``device`` for as long as it works.

    The copy is part of the graph, so a gradient finds its way back to the host by itself. Where activations are
    recomputed in the backward pass the copies are made again; without that the graph would keep every one of them.
    """
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            module._buffers[name] = buffer.to(device)
        if module._parameters and _recomputes_itself(module):
            for parameter in module._parameters.values():
                if parameter is not None:
                    parameter.data = parameter.data.to(device)
        elif module._parameters:
            module.forward = _streamed(module, module.forward, device)  # type: ignore[method-assign,unused-ignore]


def _recomputes_itself(module: Any) -> bool:
    """Return whether a module is one of transformers' blocks, whose own ``forward`` recomputes: copies made around it
    would be gone by then. What few parameters it holds itself (scales) stay on the device."""
    return any(kind.__name__ == "GradientCheckpointingLayer" for kind in type(module).__mro__)


def _streamed(module: Any, forward: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    def streamed(*args: Any, **kwargs: Any) -> Any:
        own = dict(module._parameters)
        for name, parameter in own.items():
            if parameter is not None:
                module._parameters[name] = parameter.to(device, copy=True)
        try:
            return forward(*args, **kwargs)
        finally:
            module._parameters.update(own)

    return streamed
