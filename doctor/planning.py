"""``doctor plan`` put together: the model's configuration, this machine's card, the prediction, the table of cards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from doctor.card_choice import card_rows
from doctor.exact_memory import NoTrace, as_estimate, peak_of, trace
from doctor.machine_facts import machine_facts, visible_gpus
from doctor.memory_plan import CardState, MemoryPlan, card_state, plan_for
from doctor.model import Snapshot
from doctor.model_config import FoundConfig, config_of_profile, find_config, hub_cache
from doctor.running import find_profile
from runner.estimate import MemoryRequest, estimate
from runner.model_shapes import UnknownArchitecture
from runner.plan import Plan, make_plan
from runner.profile import load_profile
from runner.text import Text, t

DEFAULT_SAMPLES = 25_000
"""An epoch for the table of cards where nobody says: IMDb's training reviews."""


DECODERS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a plan beside the run itself."""

    exact: bool = False
    all_cards: bool = False
    samples: int = DEFAULT_SAMPLES
    prices: dict[str, float] = {}


def request_of_profile(
    name: str, overrides: tuple[str, ...], snapshot: Snapshot
) -> tuple[FoundConfig, MemoryRequest]:
    """Return a profile's model and the step that ``doctor run`` would take with it on a GPU.

    Raises:
        doctor.launch.LaunchError: no such profile.
        runner.profile.ProfileError: with every mistake of the profile.
        doctor.model_config.NoConfig: its model's configuration is not on this machine.
    """
    plan = make_plan(load_profile(find_profile(name), overrides), machine_facts(snapshot.facts), "")
    found = config_of_plan(plan, snapshot)
    return found, request_of_plan(plan, found)


def config_of_plan(plan: Plan, snapshot: Snapshot) -> FoundConfig:
    """Return the configuration of a plan's model. Raises doctor.model_config.NoConfig."""
    python = snapshot.facts.python.value
    folders = [Path(folder) for folder in (python.search_path or ())] if python else []
    return config_of_profile(plan.profile.model, cache_of(os.environ), folders)


def request_of_plan(plan: Plan, found: FoundConfig) -> MemoryRequest:
    """Return the step that the trainer takes. Planned for a machine without a GPU, it is the one it would take on one."""
    model, train, settings = plan.profile.model, plan.profile.train, plan.settings
    has_gpu = settings.device == "cuda"
    return MemoryRequest(
        config=found.config, task=model.task, num_labels=max(2, len(plan.profile.data.labels)),
        batch_size=settings.micro_batch_size, sequence_length=train.max_length,
        precision=settings.precision if has_gpu or train.precision != "auto" else "bf16",  # type: ignore[arg-type]
        optimizer="adamw" if settings.fused or not has_gpu else "adamw-foreach",
        attention="eager" if model.attention == "eager" else "auto",
        gradient_checkpointing=model.gradient_checkpointing,
        lora_rank=model.lora.rank if model.lora else 0,
        accumulation=max(1, train.batch_size // settings.micro_batch_size),
    )  # fmt: skip


def cache_of(environ: Mapping[str, str]) -> Path:
    return hub_cache(environ, Path.home())


def config_of_model(name: str) -> FoundConfig:
    """Return the configuration of ``--model``. Raises doctor.model_config.NoConfig."""
    return find_config(name, cache_of(os.environ))


def default_task(config: Mapping[str, object]) -> str:
    """Return what a model is for when nobody says: decoders write on, encoders classify."""
    return "causal-lm" if config.get("model_type") in DECODERS else "classification"


def best_card(snapshot: Snapshot) -> CardState | None:
    """Return the visible card with the most free memory; None: there is none that could be read."""
    states = [state for gpu in visible_gpus(snapshot.facts) if (state := card_state(gpu)) is not None]
    return max(states, key=lambda one: one.free_bytes, default=None)


def plan_memory(
    found: FoundConfig,
    request: MemoryRequest,
    snapshot: Snapshot,
    options: PlanOptions,
    environ: Mapping[str, str],
) -> MemoryPlan:
    """Predict, hold against this machine's card, and against every card of the table where asked.

    Raises:
        UnknownArchitecture: the arithmetic does not know the model and no exact answer was asked for.
        doctor.exact_memory.NoTrace: an exact one was asked for and neither way worked.
    """
    card, notes = best_card(snapshot), list(_notes(request, snapshot))
    try:
        counted = estimate(request)
    except UnknownArchitecture:
        if not options.exact:
            raise
        counted = None
    if options.exact:
        python = snapshot.facts.python.value
        if python is None or not python.executable:
            raise NoTrace(t("no Python with torch and transformers was found; name one with --python PATH"))
        traced = trace(request, python.executable, environ, Path.cwd(), with_line=card is not None)
        if traced.mode == "real":
            notes.append(t("the model could not be walked with fake tensors ({why}): batches of 1 and 2 were really run on the CPU, and the rest is a straight line through them", why=traced.why_real))  # fmt: skip
        plan = plan_for(
            found.name, found.source, request, as_estimate(request, traced), card, peak_of(request, traced)
        )
        plan = msgspec.structs.replace(plan, arithmetic=counted)
    else:
        assert counted is not None
        plan = plan_for(found.name, found.source, request, counted, card)
    rows = tuple(card_rows(request, options.samples, options.prices)) if options.all_cards and counted else ()
    return msgspec.structs.replace(plan, cards=rows, samples=options.samples, notes=tuple(notes))


def _notes(request: MemoryRequest, snapshot: Snapshot) -> list[Text]:
    """Return what a reader must know to take the numbers for what they are."""
    gpus = snapshot.facts.gpus
    notes = []
    if gpus.status == "failed":
        notes.append(t("the cards here could not be read: {why}", why=str(gpus.why or "-")))
    elif gpus.value is not None and any(gpu.mig_enabled for gpu in gpus.value.items):
        notes.append(t("MIG is on: a process sees an instance's share of the card, not all of its memory"))
    limit = request.config.get("max_position_embeddings")
    if isinstance(limit, int) and 0 < limit < request.sequence_length:
        notes.append(
            t("the model has {limit} positions: {length} tokens are more than it can take", limit=limit, length=request.sequence_length)
        )  # fmt: skip
    if request.cards > 1:
        notes.append(t("the batch is what each of the {count} cards takes", count=request.cards))
    return notes
