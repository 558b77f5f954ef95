"""Losses that are no numbers, counted where the model returns them: before anything averages, filters or rounds them."""

from __future__ import annotations

from typing import Any

import torch


class RawLosses:
    """Counts on the device and is read once a log, so that no step waits for it."""

    def __init__(self) -> None:
        self._bad: Any = None
        self._handle: Any = None

    def watch(self, model: Any) -> None:
        """Look at every training output of ``model`` that carries a loss."""
        if self._handle is None and hasattr(model, "register_forward_hook"):
            self._handle = model.register_forward_hook(self._after_forward)

    def _after_forward(self, module: Any, inputs: Any, output: Any) -> None:
        loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        if module.training and torch.is_tensor(loss):
            self.add(loss)

    def add(self, loss: Any) -> None:
        """Count one loss."""
        bad = (~torch.isfinite(loss.detach())).sum()
        self._bad = bad if self._bad is None else self._bad + bad.to(self._bad.device)

    def taken(self) -> int | None:
        """Return how many there were since the last call; None: no loss was seen, so nobody knows."""
        bad, self._bad = self._bad, None
        return None if bad is None else int(bad)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
