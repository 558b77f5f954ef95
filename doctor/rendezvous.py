"""The variables by which launchers and platforms tell processes where they meet, as they stand in the session that starts a run. Pure.

How many processes a run has is what its command line says: what else is set (a notebook pod of a job over several machines, a
shell under torchrun) would have the trainer wait for processes that never come.
"""

from __future__ import annotations

from collections.abc import Mapping

from runner.text import Text, t

NAMES = frozenset({
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "GROUP_WORLD_SIZE",
    "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE",
})  # fmt: skip


def without_rendezvous(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that say where processes meet."""
    return {name: value for name, value in environ.items() if name not in NAMES}


def started_by_torchrun(environ: Mapping[str, str]) -> Text | None:
    """Return why this is no place to start a run: torchrun or accelerate launch started several of us; None: it is one."""
    if "TORCHELASTIC_RUN_ID" not in environ or _number(environ, "WORLD_SIZE") < 2:
        return None
    return t("torchrun (or accelerate launch) started {count} of these, and each would make a run of its own: leave it out, doctor run starts "
             "the processes itself with --nproc N", count=environ["WORLD_SIZE"])  # fmt: skip


def job_over_machines(environ: Mapping[str, str]) -> Text | None:
    """Return what to say where a platform has set variables for a job over several machines; None: it has not."""
    size, rank = _number(environ, "WORLD_SIZE"), environ.get("RANK", "")
    host, port = environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", "")
    if size < 2 or not rank.isdecimal() or not host:
        return None
    return t("WORLD_SIZE={size}, RANK={rank} and MASTER_ADDR are set here, and this run does not use them: it is on this machine alone. If they are "
             "the machines of one job, start on each of them with --nnodes {size} --node-rank {rank} --rdzv {place}",
             size=size, rank=rank, place=f"{host}:{port or 29500}")  # fmt: skip


def _number(environ: Mapping[str, str], name: str) -> int:
    value = environ.get(name, "")
    return int(value) if value.isdecimal() else 0
