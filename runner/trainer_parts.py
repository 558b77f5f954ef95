"""What the callbacks of both frameworks ask of a model."""

from __future__ import annotations

from typing import Any


def count_parameters(model: Any) -> int | None:
    """Return how many numbers a model trains and holds; None: there is no model to ask."""
    return None if model is None else sum(parameter.numel() for parameter in model.parameters())
