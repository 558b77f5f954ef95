"""Where a model lies: the one place that puts it there. One device, the host with copies on the card, or several cards.

A model too big for one card is spread by accelerate over cards, the host's memory and a folder on disk. What lies on the
host or the disk is fetched for each pass and cannot be trained: it must stand still.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import accelerate
import torch

from runner.inputs import InputError
from runner.offload import stream_parameters
from runner.parallel import distribute
from runner.plan import Plan
from runner.ranks import Ranks
from runner.rundir import RunDir
from runner.strategy_choice import IN_PARTS
from runner.text import Text, t

Note = Callable[[str, Text], None]


@dataclass(frozen=True)
class Placed:
    """A model where it works."""

    bare: Any
    """Without wrappers: what is saved, and whose parameters are trained."""
    model: Any
    """What is called."""
    device: torch.device
    """Where batches go."""
    accelerator: Any
    fetches_weights: bool = False
    """Some weights are brought to the device for each pass."""
    is_spread: bool = False
    """Over several places, by accelerate's hooks."""
    ranks: Ranks = field(default_factory=Ranks)
    strategy: str = ""
    """How several processes share the work: ``ddp``, ``fsdp`` or ``deepspeed``; empty: there is one."""

    @property
    def in_parts(self) -> bool:
        """Each rank holds a part, and meets the others throughout."""
        return self.strategy in IN_PARTS

    @property
    def processes(self) -> int:
        return self.ranks.size


def place_model(model: Any, plan: Plan, run: RunDir, note: Note, ranks: Ranks, strategy: str) -> Placed:
    """Put a model, built on the CPU, where the plan says; of several processes each has its own card.

    Raises:
        InputError: it cannot lie as asked, or something that is to be trained would lie where it cannot be.
    """
    settings = plan.settings
    if ranks.size > 1:
        device = own_device(settings.device, ranks)
        bare, wrapped = distribute(model, device, ranks, strategy, plan)
        fetches = strategy == "deepspeed"  # at stage 3; at the others its engine hooks itself into passes too
        return Placed(bare, wrapped, device, None, fetches, ranks=ranks, strategy=strategy)
    accelerator = accelerate.Accelerator(cpu=settings.device == "cpu", mixed_precision="no")
    if plan.profile.model.device_map != "none":
        return _spread(model, plan, run, note, accelerator)
    if settings.offload == "parameters":
        stream_parameters(model, accelerator.device)
        return Placed(model, model, accelerator.device, accelerator, fetches_weights=True)
    prepared = accelerator.prepare_model(model)
    return Placed(prepared, prepared, accelerator.device, accelerator)


def own_device(kind: str, ranks: Ranks) -> torch.device:
    """Return the device of this process. Raises InputError where there are fewer cards than processes here."""
    if kind == "cpu":
        return torch.device("cpu")
    cards = torch.cuda.device_count()
    if ranks.place.card >= cards:
        raise InputError(t("{count} {count:process was|processes were} started here and {cards} {cards:card|cards} can be used: start with --nproc {cards}",
                           count=ranks.place.local_size, cards=cards))  # fmt: skip
    return torch.device("cuda", ranks.place.card)


def _spread(model: Any, plan: Plan, run: RunDir, note: Note, accelerator: Any) -> Placed:
    folder = run.path / "offload"
    shutil.rmtree(folder, ignore_errors=True)
    places = settle_map(model, plan.profile.model.device_map, plan.profile.model.max_memory)
    cards = [place for place in places.values() if place not in ("cpu", "disk")]
    device = torch.device("cuda", int(cards[0])) if cards else torch.device("cpu")
    fetched = {"disk", "cpu"} if cards else {"disk"}
    refuse_trained(model, places, fetched)
    lora = plan.profile.model.lora
    if lora is not None and lora.merge and fetched & set(places.values()):
        raise InputError(t("model.lora: adapters cannot be merged into weights that lie on the host or the disk; "
                           "say merge = false: final/ is then the adapter alone"))  # fmt: skip
    try:
        spread = accelerate.dispatch_model(
            model, device_map=places, main_device=cards[0] if cards else "cpu", offload_dir=str(folder)
        )
    except ValueError as error:
        raise InputError(t("model.device_map: {why}", why=str(error).partition("\n")[0][:300])) from error
    counts = Counter(str(place) for place in places.values())
    shown = ", ".join(f"{place}: {count}" for place, count in sorted(counts.items()))
    note("info", t("the model is spread over {places} (modules a place)", places=shown))
    fetches = bool(fetched & set(places.values()))
    return Placed(spread, spread, device, accelerator, fetches_weights=fetches, is_spread=True)


def settle_map(model: Any, asked: str | dict[str, Any], max_memory: dict[str, str]) -> dict[str, str | int]:
    """Return a place for every part of the model: as asked, or by accelerate from the memory that is free now."""
    if isinstance(asked, dict):
        return {name: _place(place) for name, place in asked.items()}
    kinds = sorted(getattr(model, "_no_split_modules", None) or ())
    memory: Any = {_place(place): amount for place, amount in max_memory.items()} or None
    if asked != "sequential":
        memory = accelerate.utils.get_balanced_memory(
            model, memory, no_split_module_classes=kinds, low_zero=asked == "balanced_low_0"
        )
    places: dict[str, str | int] = accelerate.infer_auto_device_map(
        model, memory, no_split_module_classes=kinds
    )
    return places


def _place(place: Any) -> str | int:
    return int(place) if str(place).isdigit() else str(place)


def refuse_trained(model: Any, places: dict[str, str | int], fetched: set[str]) -> None:
    """Raise InputError where a parameter that is to be trained lies where it is only fetched from."""
    away = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and place_of(name, places) in fetched
    ]
    if away:
        raise InputError(
            t("model.device_map: {count} parameters that are to be trained would lie on the host or the disk, where "
              "accelerate only fetches them from ({some} ...). Freeze them (train.freeze), train adapters on what lies "
              "on a card, or keep the model on one card with train.offload = \"parameters\"",
              count=len(away), some=", ".join(away[:3]))
        )  # fmt: skip


def place_of(name: str, places: dict[str, str | int]) -> str | int:
    """Return the place of a parameter: that of the longest module name it lies under."""
    found = [key for key in places if key == "" or name == key or name.startswith(key + ".")]
    return places[max(found, key=len)] if found else ""
