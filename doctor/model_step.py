"""A training step with a model alone, as it is planned where no profile says more: configuration, task and precision."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from doctor.model import Snapshot
from doctor.model_config import FoundConfig, cache_of, find_config
from doctor.plan_device import default_precision, device_of
from doctor.plan_options import PlanOptions
from runner.memory_request import MemoryRequest
from runner.text import Text

DECODERS = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "smollm3")
_WRITING = ("ForCausalLM", "LMHeadModel")
"""Endings of classes that predict the next token."""


class Step(NamedTuple):
    """What is planned: a model and one step with it."""

    found: FoundConfig
    request: MemoryRequest
    notes: tuple[Text, ...] = ()
    """What a reader must know of how the step came about."""


def default_task(config: Mapping[str, object]) -> str:
    """Return what a model is for when nobody says: what it was built for, else decoders write on and encoders classify."""
    told = config.get("architectures")
    built = [str(one) for one in told] if isinstance(told, list) else []
    if any(one.endswith("ForSequenceClassification") for one in built):
        return "classification"
    writes = config.get("model_type") in DECODERS or any(one.endswith(_WRITING) for one in built)
    return "causal-lm" if writes else "classification"


def step_of_model(name: str, snapshot: Snapshot, options: PlanOptions) -> Step:
    """Return a model's configuration and a step with it (batch 32, 512 tokens, what the device multiplies fast).

    Raises:
        doctor.model_config.NoConfig: the configuration is neither here nor in the table.
    """
    found = find_config(name, cache_of(os.environ))
    precision = default_precision(options.on_cpu, device_of(snapshot, options))
    return Step(
        found, MemoryRequest(config=found.config, task=default_task(found.config), precision=precision)
    )
