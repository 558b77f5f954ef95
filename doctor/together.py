"""How many processes a run is started with, on which machines, and where they meet: from the command line, or from SLURM."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from doctor.start_errors import LaunchError
from runner.rank_env import SHARES_RUN
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
    count = cards if nproc == "gpu" else int(nproc) if nproc.isdecimal() else 0
    if count < 1:
        raise LaunchError(t("--nproc takes the number of processes on this machine, or gpu: one for each card ({cards} here)",
                            cards=cards))  # fmt: skip
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


class SlurmTask(msgspec.Struct, frozen=True, kw_only=True):
    """One of the tasks that ``srun`` starts: each of them is one rank."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    host: str
    """The first node of the step."""
    port: int
    step: str
    """``JOB.STEP``: what the tasks' common run directory is named after."""

    @property
    def variables(self) -> dict[str, str]:
        """What torch reads where torchrun would have set it."""
        return {
            "RANK": str(self.rank), "WORLD_SIZE": str(self.size), "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size), "MASTER_ADDR": self.host, "MASTER_PORT": str(self.port),
            SHARES_RUN: "1",
        }  # fmt: skip


def slurm_task(environ: Mapping[str, str]) -> SlurmTask | None:
    """Return which task of ``srun`` this is; None: of none, or of a step with one task (a batch script's own is none)."""
    step, job = environ.get("SLURM_STEP_ID", ""), environ.get("SLURM_JOB_ID", "")
    size = _number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    rank = _number(environ, "SLURM_PROCID")
    if not step.isdecimal() or not job.isdecimal() or rank is None or size is None or size < 2:
        return None
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or "127.0.0.1"
    node = _number(environ, "SLURM_NODEID") or 0
    per_node = tasks_per_node(
        environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE", "")
    )
    return SlurmTask(
        rank=rank, size=size, local_rank=_number(environ, "SLURM_LOCALID") or 0,
        local_size=per_node[node] if node < len(per_node) else size, host=first_host(nodes),
        port=15000 + (int(job) * 7 + int(step)) % 20000, step=f"{job}.{step}",
    )  # fmt: skip


def _number(environ: Mapping[str, str], *names: str) -> int | None:
    found = next((environ[name] for name in names if environ.get(name, "").isdecimal()), None)
    return None if found is None else int(found)


def first_host(nodes: str) -> str:
    """Return the first host of SLURM's short form."""
    match = re.match(r"([^\[,]+)(?:\[(\w+))?([^,\]-]*)?", nodes)  # gpu[01-04,07],login1
    return f"{match[1]}{match[2] or ''}" if match else nodes


def tasks_per_node(text: str) -> list[int]:
    """Return how many tasks each node has."""
    found: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):  # 2(x3),1
        found += [int(count)] * int(times or 1)
    return found
