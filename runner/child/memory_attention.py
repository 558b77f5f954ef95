"""Attention as the runner computes it: on the CPU its own, in blocks, where scores are dropped (``runner/blocked_attention.py``)."""

import contextlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from runner.child.by_path import load_by_path
else:
    from by_path import load_by_path

_CODE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "blocked_attention.py")


def as_the_runner_attends(torch: Any, device: str) -> Any:
    """Return what to enter around forward and backward passes. A torch that is too old for the runner is left as it is."""
    if device != "cpu" or not hasattr(torch, "get_autocast_dtype"):
        return contextlib.nullcontext()
    return load_by_path(_CODE).attention_in_blocks()
