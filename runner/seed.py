"""Randomness: every stream is set from (seed, purpose, step), so none has a state that a checkpoint must
carry."""

from __future__ import annotations

import random

import numpy
import torch

from runner.seeds import seed_for


def seed_everything(seed: int) -> None:
    """Seed python, numpy and torch (CPU and every GPU) alike."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def seed_step(seed: int, window: int, rank: int = 0) -> None:
    """Seed dropout and whatever else draws in window ``window``: the same whether or not the run was
    interrupted, whatever ran between the windows, and however often the window is tried again. Each rank draws its own;
    rank 0 what a process alone draws."""
    seed_everything(seed_for(seed, "step", window, *([rank] if rank else [])))


def set_deterministic(wanted: bool) -> None:
    """Let torch use only deterministic kernels (CUBLAS_WORKSPACE_CONFIG is the launcher's to set)."""
    if not wanted:
        return
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.utils.deterministic.fill_uninitialized_memory = False
