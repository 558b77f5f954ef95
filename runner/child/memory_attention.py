"""Attention as the runner computes it: on the CPU its own, in blocks, where scores are dropped (``runner/blocked_attention.py``)."""

import contextlib
import importlib.util
import os
from typing import Any

_CODE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "blocked_attention.py")


def as_the_runner_attends(torch: Any, device: str) -> Any:
    """Return what to enter around forward and backward passes. A torch that is too old for the runner is left as it is."""
    if device != "cpu" or not hasattr(torch, "get_autocast_dtype"):
        return contextlib.nullcontext()
    spec = importlib.util.spec_from_file_location("doctor_blocked_attention", _CODE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.attention_in_blocks()
