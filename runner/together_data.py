"""What several processes of one run share at its beginning: data made once a machine, weights of rank 0."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec
import torch

from runner.build import build_model
from runner.data import Prepared
from runner.inputs import InputError
from runner.plan import Plan
from runner.ranks import Ranks
from runner.sharded import put_from_first
from runner.signals import Stopped, StopRequest
from runner.strategy import settle_strategy
from runner.text import Text, t
from runner.weightless import Layout, layout_of

Note = Callable[[str, Text], None]
"""``note(level, sentence)``"""


def prepared_together(ranks: Ranks, stop: StopRequest, make: Callable[[], Prepared]) -> Prepared:
    """Return the run's data: the first rank of each machine makes it, the others read it, and all have the same.

    Raises:
        InputError: machines made different data of the same plan.
        Stopped: when asked to stop meanwhile.
    """
    found: list[Prepared] = []
    if not ranks.wait_for(lambda: found.append(make()), everywhere=True, stop=stop):
        raise Stopped
    data = found[0] if found else make()
    hashes = ranks.gathered(msgspec.to_builtins([data.facts.train.sha256, data.facts.eval.sha256]))
    different = [rank for rank, one in enumerate(hashes) if one != hashes[0]]
    if different:
        raise InputError(t("rank {rank} made other training data of the same profile than rank 0: its machine has other files "
                           "or another tokenizer", rank=different[0]))  # fmt: skip
    return data


class Built(NamedTuple):
    """A model as this rank begins with it."""

    model: torch.nn.Module
    new_weights: list[str]
    """What is not pretrained; rank 0 tells it."""
    strategy: str


def built_together(plan: Plan, data: Prepared, ranks: Ranks, stop: StopRequest, note: Note) -> Built:
    """Return the run's model. Of one that is to be cut into parts rank 0 alone builds the whole.

    Raises:
        InputError: it cannot be opened, or this rank has another one.
        Stopped: when asked to stop meanwhile.
    """

    def build(weightless: bool = False) -> tuple[torch.nn.Module, list[str]]:
        return build_model(plan, data.task, data.tokenizer, weightless)

    strategy = settle_strategy(plan, lambda: build(weightless=True)[0], ranks, note)
    if strategy != "fsdp":
        return Built(*build(), strategy)
    found: list[tuple[torch.nn.Module, list[str]]] = []
    if not ranks.wait_for(lambda: found.append(build()), everywhere=False, stop=stop):
        raise Stopped
    wanted: Layout = ranks.told(layout_of(found[0][0]) if found else None)
    if found:
        return Built(*found[0], strategy)
    return Built(_weightless_like(wanted, build, ranks.rank), [], strategy)


def _weightless_like(
    wanted: Layout, build: Callable[[bool], tuple[torch.nn.Module, list[str]]], rank: int
) -> torch.nn.Module:
    """Return the model without weights where that gives ``wanted``, else the whole one."""
    for weightless in (True, False):
        try:
            model, _ = build(weightless)
        except RuntimeError:  # its construction looks at weights, which are not there
            if weightless:
                continue
            raise
        if layout_of(model) == wanted:
            return model
    raise InputError(t("rank {rank} built another model of the same profile than rank 0: its machine has other files of it, or another "
                       "transformers", rank=rank))  # fmt: skip


def share_weights(
    tensors: dict[str, torch.Tensor], model: torch.nn.Module, left_out: Collection[str], ranks: Ranks
) -> None:
    """Put rank 0's whole ``tensors`` in place on all ranks, one after another. Raises RuntimeError: other weights."""
    places = {name: place for name, place in model.state_dict(keep_vars=True).items() if name not in left_out}
    missing, unknown = places.keys() - tensors.keys(), tensors.keys() - places.keys()
    if wrong := ranks.told(sorted(missing | unknown)):
        raise RuntimeError(f"the weights are not those of this model: {', '.join(wrong[:5])}")
    for name, place in places.items():
        put_from_first(tensors[name] if ranks.is_first else None, place, ranks)
