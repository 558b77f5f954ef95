"""Will it fit: memory foretold, measured, and the batch that fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from doctor.article_formula import Comparison
    from doctor.corrections import Measurement
    from doctor.measuring import Measured
    from doctor.memory_plan import MemoryPlan
    from doctor.model import Snapshot
    from doctor.model_config import FoundConfig
    from doctor.model_step import Step
    from doctor.plan_options import PlanOptions
    from doctor.tuning import Compared, TunedBatch
    from runner.estimate import MemoryRequest
    from runner.text import Text


def model_step(name: str, snapshot: Snapshot, options: PlanOptions) -> Step:
    """Return a model's configuration and a step with it. Raises as :func:`doctor.model_step.step_of_model`."""
    from doctor.model_step import step_of_model

    return step_of_model(name, snapshot, options)


def profile_step(
    profile: str, overrides: Sequence[str], snapshot: Snapshot, on_cpu: bool = False, processes: int = 1
) -> Step:
    """Return a profile's model and the step that each of ``processes`` would take. Raises as
    :func:`doctor.profile_step.step_of_profile`."""
    from doctor.profile_step import step_of_profile

    return step_of_profile(profile, tuple(overrides), snapshot, on_cpu, processes)


def visible_card_count(snapshot: Snapshot) -> int:
    """Return how many cards answer and are left to a process by CUDA_VISIBLE_DEVICES."""
    from doctor.visible_gpus import visible_gpus

    return len(visible_gpus(snapshot.facts))


def plan_memory(
    found: FoundConfig,
    request: MemoryRequest,
    snapshot: Snapshot,
    options: PlanOptions | None = None,
    measured: Measurement | None = None,
) -> MemoryPlan:
    """Predict a step's peak memory and hold it against the machine's card and, where asked, every known card.

    Raises:
        runner.model_shapes.UnknownArchitecture: the arithmetic does not know the model; an exact plan needs not.
        doctor.memory_troubles.NoTrace: an exact plan was asked for, and the model could not be traced.
    """
    from doctor.plan_options import PlanOptions
    from doctor.planning import plan_memory
    from doctor.probes import Context

    return plan_memory(found, request, snapshot, options or PlanOptions(), Context().environ, measured)


def knows_model(name: str) -> bool:
    """Is the configuration of a model of this name here or in the table?"""
    from os import environ

    from doctor.model_config import NoConfig, cache_of, find_config

    try:
        find_config(name, cache_of(environ))
    except NoConfig:
        return False
    return True


def has_measurements() -> bool:
    """Was memory measured here before? A plan then depends on which torch it was measured with."""
    from doctor.corrections import store_path
    from doctor.probes import Context

    return store_path(Context().environ).exists()


def least_memory(folder: Path) -> Text | None:
    """Return what training takes at least by the weights in a model's folder; None: there are none, or they do not tell."""
    from doctor.weights_on_disk import floor_text

    return floor_text(folder)


def with_cpu_here(
    plan: MemoryPlan, snapshot: Snapshot, options: PlanOptions, step_of: Callable[[PlanOptions], Step]
) -> MemoryPlan:
    """Return the plan with the same on this machine's CPU beside it, where it has no card and none was asked about."""
    from doctor.planning import with_cpu_here
    from doctor.probes import Context

    return with_cpu_here(plan, snapshot, options, Context().environ, step_of)


def options_here(options: PlanOptions, snapshot: Snapshot) -> PlanOptions:
    """Return the options for real steps here: on the CPU where there is no card."""
    from doctor.plan_device import options_here

    return options_here(options, snapshot)


def measure_memory(
    request: MemoryRequest,
    snapshot: Snapshot,
    options: PlanOptions,
    limit_s: float,
    told: Callable[[Measured], None],
) -> Compared:
    """Run real steps at growing batch on this machine's device, and keep how far the prediction was off.

    Raises:
        doctor.memory_troubles.CannotMeasure: there is no device, or a step could not be run.
        UnknownArchitecture, NoTrace: as :func:`plan_memory`.
    """
    from doctor.probes import Context
    from doctor.tuning import measure_here

    return measure_here(request, snapshot, options, Context().environ, limit_s, told)


def tune_batch(
    request: MemoryRequest,
    snapshot: Snapshot,
    options: PlanOptions,
    limit_s: float,
    told: Callable[[Measured], None],
) -> TunedBatch:
    """Find the largest micro-batch by trying, and keep it. Raises doctor.memory_troubles.CannotMeasure."""
    from doctor.probes import Context
    from doctor.tuning import tune_here

    return tune_here(request, snapshot, options, Context().environ, limit_s, told)


def plan_memory_of(
    profile: str, overrides: Sequence[str], snapshot: Snapshot
) -> tuple[MemoryPlan | None, Text | None]:
    """Return what a profile's step takes of this machine's card, or why that cannot be told."""
    from doctor.model_config import NoConfig
    from doctor.plan_options import PlanOptions
    from doctor.start_errors import LaunchError
    from runner.model_shapes import UnknownArchitecture

    try:
        step = profile_step(profile, overrides, snapshot)
        options = PlanOptions(by_profile=True, notes=step.notes)
        return plan_memory(step.found, step.request, snapshot, options), None
    except (NoConfig, LaunchError) as error:
        return None, error.text
    except UnknownArchitecture as error:
        return None, error.problem


def compare_formulas(request: MemoryRequest) -> Comparison:
    """Return what tutorials' formula and accelerate's rule say beside ours. Raises UnknownArchitecture."""
    from doctor.article_formula import compare

    return compare(request)
