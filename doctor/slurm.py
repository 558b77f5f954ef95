"""What SLURM says of a step in its variables: which task this is, of how many, on which nodes. Pure.

``srun`` sets the step's own variables (``SLURM_STEP_*``); those of the job may stand beside them and mean something else. In a
step over several components of a heterogeneous job the numbers (rank, node, tasks a node) count over all of them, and the list
of nodes is the component's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from doctor.start_errors import LaunchError
from runner.rank_env import OWN_CARDS, SHARES_RUN
from runner.text import t

MOST_NODES = 100_000


class SlurmTask(msgspec.Struct, frozen=True, kw_only=True):
    """One of the tasks that ``srun`` starts: each of them is one rank."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    host: str
    """The first node of the step."""
    port: int
    has_own_cards: bool = False
    """It sees its own cards alone."""
    step: str
    """``JOB.STEP``, ``JOB.STEP-1`` after a requeue: what the tasks' common run directory is named after."""

    @property
    def variables(self) -> dict[str, str]:
        """What torch reads where torchrun would have set it."""
        return {
            "RANK": str(self.rank), "WORLD_SIZE": str(self.size), "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size), "MASTER_ADDR": self.host, "MASTER_PORT": str(self.port),
            SHARES_RUN: "1",
        } | ({OWN_CARDS: "1"} if self.has_own_cards else {})  # fmt: skip

    def over(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return a trainer's variables with the task's; as with other launchers DDP does not warn of what it looks for."""
        return {"TORCH_CPP_LOG_LEVEL": "ERROR", **environment, **self.variables}


def slurm_task(environ: Mapping[str, str]) -> SlurmTask | None:
    """Return which task of ``srun`` this is; None: of none, or of a step with one task (a batch script's own is none).

    Where somebody has said where the tasks meet (MASTER_ADDR, MASTER_PORT), they meet there.

    Raises:
        LaunchError: the variables name more nodes than they list, so that the first is not known.
    """
    step, job = (
        environ.get("SLURM_STEP_ID", ""),
        environ.get("SLURM_JOB_ID", "") or environ.get("SLURM_JOBID", ""),
    )
    size = _number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    rank = _number(environ, "SLURM_PROCID")
    if not step.isdecimal() or not job.isdecimal() or rank is None or size is None or size < 2:
        return None
    node, local = _number(environ, "SLURM_NODEID") or 0, _number(environ, "SLURM_LOCALID") or 0
    restarts = _number(environ, "SLURM_RESTART_COUNT")
    each = tasks_per_node(environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE", ""))
    here = _tasks_here(environ, each, node, size)
    return SlurmTask(
        rank=rank, size=size, local_rank=local, local_size=here, has_own_cards=_has_own_cards(environ, here),
        host=environ.get("MASTER_ADDR") or first_host(environ, len(each)),
        port=_number(environ, "MASTER_PORT") or 15000 + (int(job) * 7 + int(step)) % 20000,
        step=f"{job}.{step}" + (f"-{restarts}" if restarts else ""),
    )  # fmt: skip


def _has_own_cards(environ: Mapping[str, str], tasks_here: int) -> bool:
    """Return whether SLURM shows each task its own cards; all of them where nothing binds (``--gpu-bind=none``)."""
    visible = [card for card in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if card]
    binds = any(environ.get(name) for name in ("SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_GPU_BIND"))  # fmt: skip
    return binds and 0 < len(visible) < tasks_here


def _tasks_here(environ: Mapping[str, str], each: list[int], node: int, size: int) -> int:
    """Return how many tasks of the step this node has."""
    if node < len(each):
        return each[node]
    nodes = _number(environ, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES") or 1
    return _number(environ, "SLURM_NTASKS_PER_NODE") or max(1, size // nodes)


def _number(environ: Mapping[str, str], *names: str) -> int | None:
    found = next((environ[name] for name in names if environ.get(name, "").isdecimal()), None)
    return None if found is None else int(found)


def first_host(environ: Mapping[str, str], nodes: int) -> str:
    """Return the first node of a step over so many ``nodes`` (0: not said).

    Raises:
        LaunchError: a step over more nodes than are listed, not all of them the job's.
    """
    names = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
    hosts = hosts_of(next((environ[name] for name in names if environ.get(name)), "127.0.0.1"))
    if nodes <= len(hosts) or not any(name in environ for name in names):
        return hosts[0]
    components = [hosts_of(environ[name]) for name in _components(environ)]
    if sum(len(one) for one in components) == nodes:
        return components[0][0]
    raise LaunchError(
        t("this step of SLURM runs on {nodes} nodes and lists {listed}: which of them is the first is not known. "
          "Set MASTER_ADDR to it before srun", nodes=nodes, listed=len(hosts))
    )  # fmt: skip


def _components(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables with the node lists of a heterogeneous job's components, in order."""
    # Before release 20.02 it was called a pack.
    for kind in ("HET", "PACK"):
        number = 0
        while (name := f"SLURM_JOB_NODELIST_{kind}_GROUP_{number}") in environ:
            yield name
            number += 1


def hosts_of(nodes: str) -> list[str]:
    """Return the hosts of SLURM's short form, in order: ``gpu[01-03,7],login1`` -> gpu01 gpu02 gpu03 gpu7 login1."""
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", nodes):
        for host in _expanded(part):
            found.append(host)
            if len(found) >= MOST_NODES:
                return found
    return found or [nodes]


def _expanded(part: str) -> Iterator[str]:
    """Yield every name that one part without outer commas stands for; it may have several brackets (``rack[0-1]n[1-2]``)."""
    head, bracket, rest = part.partition("[")
    if not bracket:
        yield part
        return
    inside, _, tail = rest.partition("]")
    for piece in inside.split(","):
        first, dash, last = piece.partition("-")
        if not dash or not (first.isdecimal() and last.isdecimal()):
            numbers: Iterable[str] = [piece]
        else:
            width = len(first)
            numbers = (str(number).zfill(width) for number in range(int(first), int(last) + 1))
        for digits in numbers:
            yield from (f"{head}{digits}{end}" for end in _expanded(tail))


def tasks_per_node(text: str) -> list[int]:
    """Return how many tasks each node has."""
    found: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):  # 2(x3),1
        found += [int(count)] * min(int(times or 1), MOST_NODES)
    return found
