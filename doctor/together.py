"""How many processes a run is started with, on which machines, and where they meet, as the command line says it."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from doctor.slurm import SlurmTask
from doctor.start_errors import LaunchError
from runner.rundir import RunDir
from runner.start import Start
from runner.text import t


class Together(Start, frozen=True):
    """A start of several processes; ``RUN_DIR/start.json``, so that a resumed run starts as many."""

    def run_dir(self, path: Path) -> Path:
        """Return where this machine keeps its part: machines may share a disk, so each has a directory of its own."""
        return path.with_name(f"{path.name}-node{self.node_rank}") if self.node_rank else path


def together_of(nproc: str, nnodes: int, node_rank: int | None, rdzv: str, cards: int) -> Together | None:
    """Return what the options say; None: one process, started as ever.

    Raises:
        LaunchError: they contradict each other, or name more than there is.
    """
    count = _processes(nproc, cards)
    if nnodes <= 1:
        if rdzv or node_rank:
            raise LaunchError(t("--rdzv and --node-rank are for several machines: say --nnodes N too"))
        return Together(nproc=count) if count > 1 else None
    host, colon, port = rdzv.rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise LaunchError(t("{count} machines have to meet: --rdzv HOST:PORT names the first of them and a free port there",
                            count=nnodes))  # fmt: skip
    rank = node_rank if node_rank is not None else _own_node(host, nnodes)
    if not 0 <= rank < nnodes:
        raise LaunchError(
            t("--node-rank is from 0 to {last} with {count} machines", last=nnodes - 1, count=nnodes)
        )
    return Together(nproc=count, nnodes=nnodes, node_rank=rank, master=rdzv)


def _processes(nproc: str, cards: int) -> int:
    """Return how many processes ``--nproc`` means here. Raises LaunchError."""
    count = cards if nproc == "gpu" else int(nproc) if nproc.isdecimal() else 0
    if count < 1:
        raise LaunchError(t("--nproc takes the number of processes on this machine, or gpu: one for each card ({cards} here)",
                            cards=cards))  # fmt: skip
    return count


def together_in_step(nproc: str, step: SlurmTask, cards: int) -> Together:
    """Return the start of one machine's processes under ``srun``, which starts one task a node: the step says the rest.

    Raises:
        LaunchError: it starts several on a node, each of which would start as many again.
    """
    if step.local_size != 1:
        raise LaunchError(t("srun starts {count} tasks on this node, and --nproc would start as many processes in each: leave --nproc out, "
                            "or give srun --ntasks-per-node=1", count=step.local_size))  # fmt: skip
    return Together(
        nproc=_processes(nproc, cards),
        nnodes=step.size,
        node_rank=step.rank,
        master=f"{step.host}:{step.port}",
    )


def _own_node(host: str, nnodes: int) -> int:
    """Return 0 on the machine that is met at; of two machines the other is 1. Raises LaunchError: that says not enough."""
    if is_here(host):
        return 0
    if nnodes == 2:
        return 1
    raise LaunchError(
        t(
            "which of the {count} machines is this? Say --node-rank N; {host} is number 0",
            count=nnodes,
            host=host,
        )
    )


def is_here(host: str) -> bool:
    """Is a name or address one of this machine's? Asked by listening there: only one's own address can be bound."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
        except OSError:
            continue
    return False


def keep(run: RunDir, together: Together | None) -> None:
    """Write down how a run was started. Raises OSError."""
    path = run.start
    if together is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(msgspec.json.encode(together))


def kept(run: RunDir) -> Together | None:
    """Return how a run was last started; None: as one process."""
    try:
        return msgspec.json.decode(run.start.read_bytes(), type=Together)
    except (OSError, msgspec.DecodeError):
        return None
