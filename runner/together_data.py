"""What several processes of one run share at its beginning: data made once a machine, weights of rank 0."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import torch

from runner.data import Prepared
from runner.inputs import InputError
from runner.prepare import Stopped
from runner.ranks import Ranks
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


def share_tensor(tensor: torch.Tensor, ranks: Ranks) -> None:
    """Overwrite a tensor, wherever it lies, with rank 0's."""
    host = tensor.detach().cpu().contiguous()
    ranks.fill(host)
    if not ranks.is_first:
        with torch.no_grad():
            tensor.copy_(host)
