"""Runs: planned, started, resumed, stopped, proved, compared in pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.service.diagnosis import examine, examine_for_run

if TYPE_CHECKING:
    from doctor.bench_command import CommandBenchOptions
    from doctor.bench_records import Comparison as BenchComparison
    from doctor.bench_runs import BenchOptions
    from doctor.command_run import CommandOptions
    from doctor.launch import StartedRun
    from doctor.model import Snapshot
    from doctor.prove import Proved
    from doctor.running import PlannedRun
    from doctor.slurm import SlurmTask
    from doctor.together import Together
    from runner.alert_settings import AlertsSection
    from runner.command_plan import CommandPlan
    from runner.rundir import RunDir
    from runner.text import Text


def profile_names() -> list[str]:
    """Return the names of the shipped profiles."""
    from doctor.running import profile_names

    return profile_names()


def profiles() -> list[tuple[str, Text]]:
    """Return name and one line of words of every profile at hand: this folder's, then the shipped ones."""
    from doctor.profiles import list_profiles

    return list_profiles()


def plan_run(
    profile: str,
    overrides: Sequence[str] = (),
    python: str | None = None,
    snapshot: Snapshot | None = None,
    run_dir: str = "",
) -> PlannedRun:
    """Plan a profile (a shipped one's name, or a path) for this machine, and judge the machine for it.

    Raises:
        doctor.launch.LaunchError: no such profile.
        runner.profile.ProfileError: with every mistake of the profile and the overrides.
    """
    from doctor.running import plan_run

    return plan_run(profile, overrides, examine_for_run(python) if snapshot is None else snapshot, run_dir)


def share_run(planned: PlannedRun, processes: int, run_dir: str = "") -> PlannedRun:
    """Return a planned run as so many processes would share it, judged by what each of them takes."""
    from doctor.shared_run import share_run

    return share_run(planned, processes, run_dir)


def start_run(
    planned: PlannedRun,
    run_dir: Path | None = None,
    together: Together | None = None,
    task: SlurmTask | None = None,
) -> StartedRun:
    """Make the run directory and start the trainer and its sampler; ``together``: in several processes.

    Raises doctor.launch.LaunchError.
    """
    from doctor.running import begin

    return begin(planned, run_dir, together=together, task=task)


def resume_run(
    name: str,
    python: str | None = None,
    approximate: bool = False,
    together: Together | None = None,
    task: SlurmTask | None = None,
) -> StartedRun:
    """Go on with a run from its last checkpoint; ``approximate``: also where that cannot be exact.

    Raises FileNotFoundError, doctor.launch.LaunchError.
    """
    from doctor.running import resume
    from runner.rundir import find_run

    return resume(find_run(name), python, approximate=approximate, together=together, task=task)


def plan_command(
    argv: Sequence[str], options: CommandOptions, python: str | None = None, snapshot: Snapshot | None = None
) -> tuple[CommandPlan, Snapshot]:
    """Plan a command of the user's own for this machine and the Python that it trains with.

    Raises:
        doctor.launch.LaunchError: there is no such program, or none that is to run on finish.
        doctor.probes.target.BadPython: ``python`` is none.
    """
    from doctor.command_run import named_by_command, plan_command, python_of, refuse_unknown_finish

    refuse_unknown_finish(options.on_finish)
    found = python_of(argv)
    snapshot = snapshot or (examine(python) if python else named_by_command(examine(found), argv))
    return plan_command(argv, snapshot, options), snapshot


def start_command(
    plan: CommandPlan, snapshot: Snapshot, run_dir: Path | None = None, alerts: AlertsSection | None = None
) -> StartedRun:
    """Make the run directory of a command and start what supervises it. Raises doctor.launch.LaunchError."""
    from doctor.command_run import begin_command

    return begin_command(plan, snapshot, run_dir, alerts=alerts)


def prove(
    name: str,
    steps: int,
    python: str | None = None,
    overrides: Sequence[str] = (),
    tell: Callable[[Text], None] = print,
) -> Proved:
    """Train the first steps of a run's plan, or a profile's, twice and compare every bit; keep it in RUN/proof.json.

    Raises:
        doctor.launch.LaunchError: there is neither run nor profile, or a start fails.
        runner.profile.ProfileError: with every mistake of the profile.
        runner.plan.PlanError: the run has no plan that can be trained again.
    """
    from doctor.prove import find_proof, prove

    plan, interpreter, kept = find_proof(name, python, overrides)
    return prove(plan, examine(interpreter), interpreter, steps, tell, kept)


def bench(
    name: str,
    overrides: Sequence[str],
    options: BenchOptions,
    python: str | None = None,
    tell: Callable[[Text], None] = print,
) -> BenchComparison:
    """Measure what makes a profile's steps faster here, in interleaved pairs of fresh processes.

    Raises:
        doctor.launch.LaunchError: there is no such profile, no interpreter, or something it needs is missing.
        doctor.bench_order.BenchError: the profile cannot be trained here.
        runner.profile.ProfileError: with every mistake of the profile.
    """
    from doctor.benching import bench_named

    return bench_named(name, overrides, examine_for_run(python), options, tell)


def bench_command(
    argv: Sequence[str],
    options: CommandBenchOptions,
    python: str | None = None,
    tell: Callable[[Text], None] = print,
) -> BenchComparison:
    """Measure what can be changed from outside of a command of the user's own.

    Raises:
        doctor.launch.LaunchError: there is no such program.
        doctor.bench_order.BenchError: the command fails as it stands.
    """
    from doctor.bench_command import bench_command
    from doctor.command_run import CommandOptions

    plan, snapshot = plan_command(argv, CommandOptions(), python)
    return bench_command(plan, snapshot, options, tell)


def write_changed(profile: str, overrides: Sequence[str], change: dict[str, Any], target: Path) -> None:
    """Write a profile with what a comparison would change in it. Raises doctor.launch.LaunchError, OSError."""
    from doctor.bench_write import write_changed
    from doctor.running import find_profile

    write_changed(find_profile(profile), overrides, change, target)


def cancel_on_finish(run: RunDir) -> None:
    """Keep the command of ``--on-finish`` from being run. Raises OSError."""
    run.cancel_on_finish.touch()


def stop_run(name: str) -> bool:
    """Ask a run to save and leave; False: it does not run. Raises FileNotFoundError,
    doctor.launch.LaunchError."""
    from doctor.running import stop
    from runner.rundir import find_run

    return stop(find_run(name))
