"""A profile's training step as memory is planned for it: what ``doctor run`` would take, alone or in several processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from doctor.model import Snapshot
from doctor.model_config import FoundConfig, NoConfig, cache_of, config_of_profile
from doctor.model_step import Step
from doctor.visible_gpus import visible_gpus
from runner.estimate import estimate
from runner.memory_request import MemoryRequest
from runner.model_shapes import UnknownArchitecture
from runner.plan import Plan, make_plan
from runner.profile import load_profile
from runner.step_request import shared, step_request, strategy_for, worst_shape
from runner.text import Text, t


def config_of_plan(plan: Plan, snapshot: Snapshot) -> FoundConfig:
    """Return the configuration of a plan's model. Raises doctor.model_config.NoConfig."""
    python = snapshot.facts.python.value
    folders = [Path(folder) for folder in (python.search_path or ())] if python else []
    return config_of_profile(plan.profile.model, cache_of(os.environ), folders)


def step_of_profile(
    name: str, overrides: tuple[str, ...], snapshot: Snapshot, on_cpu: bool = False, processes: int = 1
) -> Step:
    """Return a profile's model and the step that ``doctor run`` would take with it on a GPU, or on this machine's CPU.

    Raises:
        doctor.launch.LaunchError: no such profile.
        runner.profile.ProfileError: with every mistake of the profile.
        doctor.model_config.NoConfig: its model's configuration is not on this machine.
    """
    from doctor.running import find_profile
    from doctor.tuned_batch import facts_for

    profile = load_profile(find_profile(name), overrides)
    plan = make_plan(profile, facts_for(profile, snapshot), "")
    step = sharing(plan, snapshot, processes, on_cpu)
    return step._replace(notes=(*_notes(plan), *step.notes))


def sharing(plan: Plan, snapshot: Snapshot, processes: int, on_cpu: bool = False) -> Step:
    """Return the step that each of so many processes takes, and how they share it. Raises doctor.model_config.NoConfig."""
    found = config_of_plan(plan, snapshot)
    alone = request_of_plan(plan, found, on_cpu, processes)
    if processes == 1:
        return Step(found, alone)
    strategy, why = strategy_of(plan, alone, processes, None if on_cpu else card_bytes_of(snapshot), on_cpu)
    return Step(found, shared(plan, alone, processes, strategy), _told(processes, strategy, why))


def sharing_in_words(plan: Plan, snapshot: Snapshot, processes: int) -> tuple[Text, ...]:
    """Return how a run would be shared, also where its model is not known here."""
    on_cpu = plan.settings.device == "cpu"
    try:
        return sharing(plan, snapshot, processes, on_cpu).notes
    except NoConfig:
        return _told(
            processes, *strategy_for(plan, None, None if on_cpu else card_bytes_of(snapshot), processes)
        )


def _told(processes: int, strategy: str, why: Text) -> tuple[Text, ...]:
    return (
        t(
            "{count} {count:process trains|processes train} together: {strategy}",
            count=processes,
            strategy=strategy,
        ),
        why,
    )


def request_of_plan(
    plan: Plan, found: FoundConfig, on_cpu: bool = False, processes: int = 1
) -> MemoryRequest:
    """Return the step of one process. Planned for a machine without a GPU, it is the one it would take on one."""
    settings, train = plan.settings, plan.profile.train
    has_gpu = settings.device == "cuda"
    precision: Any = settings.precision if has_gpu or on_cpu or train.precision != "auto" else "bf16"
    labels = max(2, len(plan.profile.data.labels))
    samples, length = worst_shape(plan, processes)
    request = step_request(
        plan, found.config, labels, samples, length, "cpu" if on_cpu else "cuda", precision
    )
    return request if has_gpu or on_cpu or train.fused is False else msgspec.structs.replace(request, optimizer="adamw")  # fmt: skip


def card_bytes_of(snapshot: Snapshot) -> int | None:
    """Return the size of the card that each process would have; None: there is none, or it could not be read."""
    cards = visible_gpus(snapshot.facts)
    return min((card.memory_total_bytes or 0 for card in cards), default=0) or None


def strategy_of(
    plan: Plan, alone: MemoryRequest, processes: int, card_bytes: int | None, on_cpu: bool
) -> tuple[str, Text]:
    """Return how so many processes would share the plan, and why, as the trainer settles it when it has its model."""
    try:
        needed = estimate(alone).allocated_bytes
    except UnknownArchitecture:
        needed = None
    if card_bytes is None and not on_cpu and plan.profile.parallel.strategy == "auto" and needed:
        why = t("the card is not known; a copy of the model in each process (ddp) where {needed} MB fit it, else fsdp",
                needed=needed >> 20)  # fmt: skip
        return "ddp", why
    return strategy_for(plan, needed, card_bytes, processes)


def _notes(plan: Plan) -> list[Text]:
    """Return what of a profile the figures take in a way of their own."""
    profile, notes = plan.profile, []
    train, spread = profile.train, profile.model.device_map
    if train.micro_batch_tokens:
        samples, length = worst_shape(plan)
        notes.append(t("train.micro_batch_tokens: no micro-batch has more than {tokens} positions, at worst {samples} x {length}",
                       tokens=train.micro_batch_tokens, samples=samples, length=length))  # fmt: skip
    if train.packing:
        notes.append(t("train.packing: every row is full, so every micro-batch is as large as the largest"))
    if spread != "none":
        notes.append(t("model.device_map: the fullest of {cards} {cards:card|cards} over which accelerate spreads the layers, by about equal shares; "
                       "what it puts on the host or the disk is not counted", cards=max(1, plan.machine.gpu_count)))  # fmt: skip
    if train.compile:
        notes.append(
            t(
                "train.compile: compiled code keeps other values for the backward pass; doctor plan foretells the code as written"
            )
        )
    return notes
