"""What of a snapshot decides a plan, and the plan's wishes as facts to be judged with the machine. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from doctor.model import Environment, Facts, Reading, Workload
from doctor.visible_gpus import visible_gpus
from runner.plan import MachineFacts, Plan

if TYPE_CHECKING:
    from runner.estimate import MemoryEstimate

T = TypeVar("T")


def machine_facts(facts: Facts) -> MachineFacts:
    """Return what :func:`runner.plan.make_plan` asks of a machine. Unknown is taken as the lesser machine."""
    host, python, torch = _value(facts.host), _value(facts.python), _value(facts.torch)
    gpus = visible_gpus(facts)
    return MachineFacts(
        device="cuda" if gpus and torch is not None and bool(torch.cuda or torch.hip) else "cpu",
        compute_capability=gpus[0].compute_capability if gpus else "",
        gpu_name=gpus[0].name if gpus else "",
        gpu_count=len(gpus),
        cpu_cores_usable=usable_cores(facts),
        cpu_flags=(host.cpu_flags or ()) if host else (),
        python=(python.version or "") if python else "",
        torch_version=torch.version if torch else "",
    )


def usable_cores(facts: Facts) -> float:
    """Return the cores that the processes here may use: the least of affinity and cgroup quota; 1 when unknown."""
    host, container = _value(facts.host), _value(facts.container)
    counts = [float(count) for count in (host.affinity_count, host.cpu_count) if count] if host else []
    quota = container.cpu_quota_cores if container else None
    return max(0.1, min([*counts[:1], *([quota] if quota else [])], default=1.0))


def workload_of(plan: Plan, run_dir: str, memory: MemoryEstimate | None = None) -> Reading[Workload]:
    """Return what the run will ask of the machine, for the checks that judge a purpose.

    ``memory``: the arithmetic's prediction, for a run on a GPU whose model is known.
    """
    data = plan.profile.data
    return Reading(
        status="ok",
        source="plan.json",
        value=Workload(
            source=plan.name,
            output_dir=run_dir,
            data_path=(data.train[0] if data.train else None) if isinstance(data.train, list) else data.train,
            num_workers=plan.settings.workers,
            optimizer="adamw",
            deterministic=plan.profile.train.deterministic,
            memory_needed_bytes=memory.peak_bytes if memory else None,
            memory_needed_low_bytes=memory.low_bytes if memory else None,
            seeds_set=("python", "numpy", "torch", "cuda"),
        ),
    )


def run_environment(facts: Facts, plan: Plan) -> Reading[Environment]:
    """Return the variables that the trainer will have: the session's with the plan's laid over them.

    All but HF_HUB_OFFLINE: the plan sets it where the profile uses nothing from a hub, so it keeps nothing back.
    """
    session = facts.environment
    if session.value is None:
        return session
    planned = {name: value for name, value in plan.environment.items() if name != "HF_HUB_OFFLINE"}
    names = tuple(name for name in session.value.names if name not in planned)
    variables = {**session.value.variables, **planned}
    value = msgspec.structs.replace(session.value, variables=variables, names=names)
    return msgspec.structs.replace(session, value=value)


def _value(reading: Reading[T]) -> T | None:
    return reading.value if reading.status == "ok" else None
