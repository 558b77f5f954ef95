"""Forward, backward and update by DeepSpeed, step for step as :class:`runner.engine.Engine` does them.

Between a window's last backward pass and the update every rank holds its part of the summed gradients. They are measured,
clipped or dropped there: DeepSpeed's own norm calls what is not finite -1 and is taken in the midst of its update.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runner.choices import Settings
from runner.deepspeed_moments import ZeroMoments
from runner.deepspeed_parts import forget_gradients, gradient_parts
from runner.engine import Engine
from runner.placement import Placed
from runner.text import Text, t

NAMED = 3
"""So many parameters without a gradient are named."""


class ZeroEngine(Engine):
    """A model under DeepSpeed's ZeRO; ``placed.model`` is DeepSpeed's engine."""

    def __init__(self, placed: Placed, settings: Settings, note: Callable[[str, Text], None]) -> None:
        super().__init__(placed, settings)
        self._zero: Any = self.model.optimizer
        self.moments = ZeroMoments(self._zero, placed.bare)
        """What stands for the optimizer."""
        self._unused = Unused(placed.bare, note)
        self._witness = torch.optim.SGD([torch.nn.Parameter(torch.zeros((), device=self.device))], lr=0.0)
        """Its gradient is the norm of all: what the scaler looks at, on every rank alike."""

    def update_agreement(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # ranks meet in the midst of it

    @contextlib.contextmanager
    def keeping_gradients(self) -> Iterator[None]:
        """For all passes of a window but the last: whatever is exchanged already, the window goes on."""
        self.model.set_gradient_accumulation_boundary(False)
        try:
            yield
        finally:
            self.model.set_gradient_accumulation_boundary(True)

    def backward(self, loss: torch.Tensor) -> None:
        summed = loss * self.placed.processes  # it takes the mean over the ranks where a sum is wanted
        with self.attention():
            self.model.backward(self.scaler.scale(summed))

    def gradient_norm(self, optimizer: Any, clip_norm: float) -> torch.Tensor:
        """Unscale the gradients, clip them together and return their norm before that."""
        self._unused.tell_once()
        parts = gradient_parts(self._zero)
        own = sum(float(torch.linalg.vector_norm(part, dtype=torch.float64)) ** 2 for part in parts)
        (squares,) = self.placed.ranks.summed(own)
        norm = self._unscaled(squares**0.5)
        factor = 1.0 / self.scaler.get_scale()
        if clip_norm:
            factor *= float(torch.clamp(clip_norm / (norm + 1e-6), max=1.0))
        if factor != 1.0:
            for part in parts:
                part.mul_(factor)
        return norm

    def _unscaled(self, norm: float) -> torch.Tensor:
        """Show a norm of scaled gradients to the scaler, and return it without the scale."""
        (held,) = self._witness.param_groups[0]["params"]
        held.grad = torch.tensor(norm, dtype=torch.float32, device=self.device)
        self.scaler.unscale_(self._witness)
        found: torch.Tensor = held.grad
        return found

    def update(self, optimizer: Any) -> bool:
        """Make the update; return False where the scaler holds it back, or DeepSpeed found a number that is none after all."""
        if not super().update(self._witness):
            return False
        with torch.no_grad():  # some releases gather weights into views of a tensor that remembers its making
            self.model.step()
        return not self._zero.overflow

    def drop_gradients(self, optimizer: Any) -> None:
        forget_gradients(self._zero)


class Unused:
    """Which parameters no gradient came to in the first window."""

    def __init__(self, model: torch.nn.Module, note: Callable[[str, Text], None]) -> None:
        trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
        self._names, self._note = set(trained), note
        self._hooks = [one.register_hook(self._seen(name)) for name, one in trained.items()]

    def _seen(self, name: str) -> Callable[[torch.Tensor], None]:
        def seen(gradient: torch.Tensor) -> None:
            self._names.discard(name)

        return seen

    def tell_once(self) -> None:
        """After the first window's passes: say so where there are some."""
        if not self._hooks:
            return
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self._names:
            names = sorted(self._names)
            shown = ", ".join(names[:NAMED]) + (" ..." if len(names) > NAMED else "")
            text = t("{count} {count:parameter|parameters} had no gradient in the first window ({names}): DeepSpeed updates them with "
                     "zeros, so weight decay moves them, where other strategies leave them as they are. What nothing uses belongs "
                     "in train.freeze", count=len(names), names=shown)  # fmt: skip
            self._note("warn", text)
