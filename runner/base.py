"""The weights of a model that stand still for good: which they are, and proof that they are the same ones again.

They are not stored with a run: a checkpoint names where they came from and their hash, and a changed base is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import torch

from runner.inputs import InputError
from runner.plan import Plan
from runner.text import t
from runner.train_state import TrainState


def still_names(model: torch.nn.Module) -> frozenset[str]:
    """Return the names, as in ``state_dict()``, of the parameters that no update will ever move."""
    named = model.named_parameters(remove_duplicate=False)
    return frozenset(name for name, parameter in named if not parameter.requires_grad)


def base_hash(model: torch.nn.Module, names: Collection[str]) -> str:
    """Return the SHA-256 over names, dtypes, shapes and bytes of those parameters; empty: there are none.

    Asked before the model is placed: what lies on a disk or on several cards is not read back for it.
    """
    if not names:
        return ""
    digest = hashlib.sha256()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name in sorted(names):
        tensor = parameters[name].detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name}|{tensor.dtype}|{tuple(parameters[name].shape)}|".encode())
        if tensor.numel():
            digest.update(memoryview(tensor.view(torch.uint8).numpy()))
    return digest.hexdigest()


def base_name(plan: Plan, model: Any) -> str:
    """Return where a model came from: its name, revision and, of a hub's, the commit that was opened."""
    section = plan.profile.model
    name = section.hub or section.package or section.path or "config"
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    return f"{name}@{commit or section.revision}" if section.hub else name


def check_base(model: torch.nn.Module, names: Collection[str], state: TrainState) -> None:
    """Hold the weights that stand still against those a run was begun with. Raises InputError: they are others."""
    if state.base_sha256 and state.base_sha256 != base_hash(model, names):
        raise InputError(t("{base} is not what this run was trained on any more: its weights have another hash", base=state.base))  # fmt: skip
