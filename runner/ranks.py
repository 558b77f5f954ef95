"""What the processes of one run agree on, each time before anybody acts: sums, flags, what rank 0 decides.

Small numbers go over gloo, between hosts' memories: no card waits for them. All ranks call the same methods in the same
order; with one process none of them costs anything.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from runner.interfaces import host_name
from runner.oom import is_out_of_memory
from runner.rank_env import RankPlace
from runner.signals import Stopped, StopRequest

POLL_S = 0.1


class ShortOfMemory(RuntimeError):  # noqa: N818 - it is what it says
    """Memory was short on some rank, and all of them know it."""

    def __init__(self, rank: int, why: str) -> None:
        self.rank = rank
        super().__init__(f"out of memory on rank {rank}" + (f": {why}" if why else ""))


class OtherFailed(RuntimeError):  # noqa: N818 - it is what it says
    """Another rank could not do what this one waited for; it says itself why."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        super().__init__(f"rank {rank} failed; it says why")


class Ranks:
    """The processes of a run, seen from one of them."""

    def __init__(self, place: RankPlace | None = None, device: str = "cpu", timeout_s: float = 600.0) -> None:
        """Join the others, where there are any: torchrun's variables say where they meet."""
        self.place = place or RankPlace()
        self.timeout_s = timeout_s
        self._waits = 0
        if self.size > 1 and not dist.is_initialized():
            # Tensors on the host go over gloo, those on a card over NCCL.
            backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
            if device == "cuda":
                torch.cuda.set_device(self.place.card)
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout_s))
        self.hosts: list[str] = (
            self.gathered(host_name(os.environ.get("MASTER_ADDR", ""))) if self.size > 1 else []
        )
        """Of every rank, ``name (address)``; empty: there is one."""

    @property
    def rank(self) -> int:
        return self.place.rank

    @property
    def size(self) -> int:
        return self.place.size

    @property
    def is_first(self) -> bool:
        return self.place.is_first

    # -- numbers
    def summed(self, *amounts: float) -> list[float]:
        """Return each amount summed over all ranks, the same bits on each."""
        if self.size == 1:
            return list(amounts)
        total = torch.tensor(amounts, dtype=torch.float64)
        dist.all_reduce(total)
        found: list[float] = total.tolist()
        return found

    def largest(self, value: float) -> float:
        """Return the largest value of any rank."""
        if self.size == 1:
            return value
        most = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        return float(most)

    def any_of(self, flag: bool) -> bool:
        """Return whether any rank says so."""
        return self.largest(float(flag)) > 0

    def decided(self, flag: bool) -> bool:
        """Return what rank 0 says."""
        return bool(self.told(flag)) if self.size > 1 else flag

    # -- things
    def told(self, thing: Any) -> Any:
        """Return rank 0's; the others' is not looked at."""
        if self.size == 1:
            return thing
        held = [thing]
        dist.broadcast_object_list(held, src=0)
        return held[0]

    def gathered(self, thing: Any) -> list[Any]:
        """Return every rank's, in order."""
        if self.size == 1:
            return [thing]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, thing)
        return found

    def fill(self, tensor: torch.Tensor) -> None:
        """Overwrite a tensor of the host with rank 0's."""
        if self.size > 1:
            dist.broadcast(tensor, src=0)

    def hand_out(self, parts: Sequence[torch.Tensor] | None, own: torch.Tensor) -> None:
        """Overwrite a tensor of the host with this rank's one of the ``parts`` that rank 0 has; the others give None."""
        if parts is None:
            if own.numel():
                dist.recv(own, src=0)
            return
        own.copy_(parts[0])
        for rank, part in enumerate(parts):
            if rank and part.numel():
                dist.send(part.contiguous(), rank)

    # -- together
    @contextlib.contextmanager
    def agreement(self) -> Iterator[None]:
        """Do something that may run short of memory and meets nobody; afterwards all ranks know whether one did.

        Raises:
            ShortOfMemory: on all ranks alike.
        """
        if self.size == 1:
            yield
            return
        why = ""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            why = str(error).partition("\n")[0][:200] or "MemoryError"
        short = int(self.largest(self.rank + 1 if why else 0))
        if short:
            raise ShortOfMemory(self.rank if why else short - 1, why)

    def wait_for(self, work: Callable[[], None], everywhere: bool, stop: StopRequest | None = None) -> bool:
        """Let rank 0 (``everywhere``: the first rank of each machine) work as long as it takes; the others wait for it.

        There is no limit: whoever started the ranks ends them when one dies. Return False where ``stop`` came first, here or there.

        Raises:
            OtherFailed: it could not do it.
        """
        if self.size == 1:
            work()
            return True
        store: Any = dist.distributed_c10d._get_default_store()
        self._waits += 1
        machine = self.place.preparer if everywhere else 0
        name = f"doctor/wait/{self._waits}/{machine}"
        if self.place.prepares if everywhere else self.is_first:
            try:
                work()
            except BaseException as error:
                store.set(name, "stopped" if isinstance(error, Stopped) else "failed")
                raise
            store.set(name, "done")
            return True
        try:
            while not store.check([name]):
                if stop:
                    return False
                time.sleep(POLL_S)
            answer = store.get(name)
        except RuntimeError:
            if stop:  # so was the first rank, and where they meet went with it
                return False
            raise
        if answer not in (b"done", b"stopped"):
            raise OtherFailed(machine)
        return bool(answer == b"done")

    def leave(self) -> None:
        """Part from the others, when all have come here: where they meet lies on rank 0's machine, or in it."""
        if self.size > 1 and dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()


class AgreedStop(StopRequest):
    """A request to stop as all ranks know it: true only once :meth:`ask` found it on one of them."""

    def __init__(self, own: StopRequest, ranks: Ranks) -> None:
        super().__init__()
        self.own, self._ranks = own, ranks
        self.agreed = False

    def __bool__(self) -> bool:
        return self.agreed if self._ranks.size > 1 else bool(self.own)

    def ask(self) -> bool:
        """Ask all ranks; every rank calls this at the same place."""
        if self._ranks.size > 1:
            self.agreed = self.agreed or self._ranks.any_of(bool(self.own))
        return bool(self)

    def hear(self, agreed: bool) -> None:
        """Take in what was agreed on together with other numbers."""
        self.agreed = self.agreed or agreed
