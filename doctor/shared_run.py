"""What a planned run, or each of the processes that share it, will ask of the machine: facts for judging its start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from doctor.judge import judge
from doctor.machine import with_facts
from doctor.machine_facts import run_environment, workload_of
from doctor.model import Snapshot
from doctor.model_config import TABLE, NoConfig
from doctor.profile_step import sharing, sharing_in_words
from runner.estimate import MemoryEstimate, estimate
from runner.model_shapes import UnknownArchitecture
from runner.plan import Plan
from runner.refused_together import refused_together
from runner.rundir import runs_home

if TYPE_CHECKING:
    from doctor.running import PlannedRun


def for_purpose(plan: Plan, snapshot: Snapshot, run_dir: str, processes: int = 1) -> Snapshot:
    """Return a machine's facts with what the run, or each of its processes, will ask of it."""
    memory = memory_of(plan, snapshot, processes)
    return with_facts(
        snapshot,
        workload=workload_of(plan, run_dir or str(runs_home().absolute()), memory),
        environment=run_environment(snapshot.facts, plan),
    )


def share_run(planned: PlannedRun, processes: int, run_dir: str = "") -> PlannedRun:
    """Return a planned run as so many processes would share it, judged by what each of them takes; what they cannot do
    together is missing."""
    plan, snapshot = planned.plan, planned.snapshot
    refused = refused_together(plan, processes, plan.profile.parallel.strategy)
    if refused is not None:
        planned = replace(planned, missing=(*planned.missing, refused))
    if processes == 1:
        return planned
    snapshot = for_purpose(plan, snapshot, run_dir, processes)
    notes = sharing_in_words(plan, snapshot, processes)
    return replace(planned, snapshot=snapshot, report=judge(snapshot), notes=notes)


def memory_of(plan: Plan, snapshot: Snapshot, processes: int = 1) -> MemoryEstimate | None:
    """Return what a run on a GPU needs by arithmetic; None: it runs on the CPU, or its model is not known here.

    Only a configuration that lies on this machine counts: our table of models is for planning, not for judging.
    """
    if plan.settings.device != "cuda":
        return None
    try:
        found = sharing(plan, snapshot, processes)
        return estimate(found.request) if found.found.source != TABLE else None
    except (NoConfig, UnknownArchitecture):
        return None
