"""What several processes of one run share at its beginning: data made once a machine, weights of rank 0."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
import torch

from runner.chosen import Stopped
from runner.data import Prepared
from runner.inputs import InputError
from runner.ranks import Ranks
from runner.sharded import put, whole_shape
from runner.signals import StopRequest
from runner.text import t


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


def share_weights(
    tensors: dict[str, torch.Tensor], model: torch.nn.Module, left_out: Collection[str], ranks: Ranks
) -> None:
    """Put rank 0's whole ``tensors`` in place on all ranks, one after another. Raises RuntimeError: other weights."""
    places = {name: place for name, place in model.state_dict(keep_vars=True).items() if name not in left_out}
    missing, unknown = places.keys() - tensors.keys(), tensors.keys() - places.keys()
    if wrong := ranks.told(sorted(missing | unknown)):
        raise RuntimeError(f"the weights are not those of this model: {', '.join(wrong[:5])}")
    for name, place in places.items():
        full = tensors[name] if ranks.is_first else torch.empty(whole_shape(place), dtype=place.dtype)
        ranks.fill(full)
        put(full, place)
