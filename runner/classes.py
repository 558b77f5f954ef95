"""What tasks with classes share: their names, ids, smoothing and weights."""

from __future__ import annotations

import torch


class OfClasses:
    """Each label is one class of several; class ids are int64."""

    label_dtype = "int64"

    def __init__(
        self, classes: list[str], smoothing: float = 0.0, weights: torch.Tensor | None = None
    ) -> None:
        self.classes = classes
        self.outputs = len(classes)
        self.smoothing = smoothing
        self.weights = weights
        self.ids = {name: index for index, name in enumerate(classes)}

    def weights_at(self, device: torch.device) -> torch.Tensor | None:
        return None if self.weights is None else self.weights.to(device)

    def weighed(self, labels: torch.Tensor) -> float:
        """Return how much ``labels`` count: their number, or the sum of their class weights."""
        return float(labels.numel()) if self.weights is None else float(self.weights[labels.cpu()].sum())
