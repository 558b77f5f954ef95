"""From a profile's name to a run under way: find it, plan it for this machine, see what stands in its way, start it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from doctor.data_files import profiles_dir
from doctor.launch import LaunchError, StartedRun, new_run_dir, prepare_run, start_run
from doctor.machine import load_snapshot
from doctor.model import Finding, Report, Snapshot
from doctor.needs import missing_needs
from doctor.slurm import SlurmTask
from doctor.together import Together, kept
from doctor.trainer_pid import signal_trainer, trainer_alive
from runner.alert_settings import OFF, AlertsSection, read_alerts
from runner.command_plan import decode_command, is_command
from runner.plan import Plan, make_plan
from runner.profile import Profile, ProfileError, load_profile
from runner.rundir import RunDir
from runner.strings import printable
from runner.text import Text, t

OTHER_HOST_QUIET_S = 300.0
"""A run that another host wrote to this recently is taken as running there."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that could be started: what it would do, and what speaks against it."""

    plan: Plan
    snapshot: Snapshot
    report: Report
    missing: tuple[Text, ...]
    """What it needs and this interpreter lacks, with the commands that bring it."""
    alerts: AlertsSection = OFF
    """Who is told of what; no part of the plan."""
    notes: tuple[Text, ...] = ()
    """How several processes would share it; empty: there is one."""

    @property
    def failures(self) -> list[Finding]:
        """Return the findings that stop a start."""
        return [finding for finding in self.report.findings() if finding.level == "fail"]

    @property
    def python(self) -> str:
        """The interpreter that will train; empty: none was found."""
        reading = self.snapshot.facts.python.value
        return (reading.executable or "") if reading else ""


def find_profile(name: str) -> Path:
    """Return the file that ``name`` means: a path, or a shipped profile.

    Raises:
        LaunchError: there is neither; the shipped ones are named.
    """
    path = Path(name)
    if path.is_file():
        return path
    shipped = profiles_dir() / f"{name}.toml"
    if "/" not in name and shipped.is_file():
        return shipped
    names = ", ".join(profile_names()) or "-"
    raise LaunchError(
        t("there is no profile {name}: neither a file nor one of {names}", name=name, names=names)
    )


def profile_names() -> list[str]:
    """Return the names of the shipped profiles."""
    return sorted(path.stem for path in profiles_dir().glob("*.toml"))


def plan_run(profile: str, overrides: Sequence[str], snapshot: Snapshot, run_dir: str = "") -> PlannedRun:
    """Plan a profile for the machine of ``snapshot`` and judge that machine for it.

    Raises:
        LaunchError: no such profile.
        runner.profile.ProfileError: with every mistake of the profile.
    """
    from doctor.judge import judge
    from doctor.shared_run import for_purpose
    from doctor.tuned_batch import facts_for

    path = find_profile(profile)
    loaded: Profile = load_profile(path, overrides)
    alerts, wrong = read_alerts(path, overrides)
    if wrong:
        raise ProfileError(str(path), wrong)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    plan = make_plan(loaded, facts_for(loaded, snapshot), now)
    with_purpose = for_purpose(plan, snapshot, run_dir)
    missing = (*missing_needs(snapshot.facts, loaded), *missing_files(loaded))
    report = judge(with_purpose)
    return PlannedRun(plan=plan, snapshot=with_purpose, report=report, missing=missing, alerts=alerts)


def missing_files(profile: Profile) -> list[Text]:
    """Return one sentence for each file or folder that ``profile`` names and that is not there."""
    named = [("data.train", path) for path in profile.data.train] + [
        ("data.eval", path) for path in profile.data.eval
    ]
    if profile.model.path:
        named.append(("model.path", profile.model.path))
    return [
        t("{key}: there is no {path}; name yours with --set {key}=PATH", key=key, path=path)
        for key, path in named
        if not Path(path).exists()
    ]


def begin(
    planned: PlannedRun,
    run_dir: Path | None = None,
    with_sampler: bool = True,
    together: Together | None = None,
    task: SlurmTask | None = None,
) -> StartedRun:
    """Make the run directory of a planned run and start it, in several processes where wanted. Raises LaunchError."""
    if not planned.python:
        raise LaunchError(t("no Python was found to train with; name one with --python PATH"))
    path = run_dir or new_run_dir(planned.plan.run_name_base)
    run = prepare_run(
        planned.plan, planned.snapshot, together.run_dir(path) if together else path, planned.alerts
    )
    return start_run(run, planned.python, with_sampler=with_sampler, together=together, task=task)


def resume(
    run: RunDir,
    python: str | None = None,
    with_sampler: bool = True,
    approximate: bool = False,
    together: Together | None = None,
    task: SlurmTask | None = None,
) -> StartedRun:
    """Go on with a run where its last checkpoint left it; ``approximate``: also where that is not exact. Unless told
    otherwise with as many processes as before.

    Raises:
        LaunchError: it is running here or seems to run elsewhere, it is complete, or no interpreter is known.
    """
    from doctor.watching import RunWatcher

    refuse_command(run)
    watcher = RunWatcher(run)
    state = watcher.poll()
    if state.finished.get("outcome") == "completed" and watcher.alive is not True:
        raise LaunchError(
            t(
                "{run} is complete ({step} {step:step|steps}): there is nothing to resume",
                run=run.name,
                step=state.step,
            )
        )
    quiet_s = time.time() - (state.last_trainer_t or 0.0)
    if (
        watcher.alive is None
        and run.trainer_pid.exists()
        and not state.finished
        and quiet_s < OTHER_HOST_QUIET_S
    ):
        raise LaunchError(
            t("another machine or container wrote to {run} {seconds} s ago: it seems to run there. Stop it there first.",
              run=run.name, seconds=round(quiet_s))
        )  # fmt: skip
    return start_run(
        run, python or recorded_python(run), resume=True, with_sampler=with_sampler, approximate=approximate,
        together=together or (None if task else kept(run)), task=task,
    )  # fmt: skip


def refuse_command(run: RunDir) -> None:
    """A command of the user's own is not ours to resume. Raises LaunchError with the line that starts it again."""
    try:
        content = run.plan.read_bytes()
    except OSError:
        return
    if is_command(content):
        command = decode_command(content).command
        raise LaunchError(
            t("{run} was a command of your own: only it knows how to go on from its checkpoints. Start it again: "
              "doctor run -- {command}", run=run.name, command=printable(command))
        )  # fmt: skip


def recorded_python(run: RunDir) -> str:
    """Return the interpreter that the run was started with.

    Raises:
        LaunchError: its snapshot does not say, or that interpreter is gone.
    """
    try:
        python = load_snapshot(run.snapshot).facts.python.value
    except (OSError, ValueError):
        python = None
    executable = python.executable if python else None
    if not executable or not Path(executable).exists():
        raise LaunchError(
            t("the interpreter that started {run} is not here ({python}); name one with --python PATH",
              run=run.name, python=executable or "?")
        )  # fmt: skip
    return executable


def stop(run: RunDir) -> bool:
    """Ask the trainer of ``run`` to save and leave; return whether there was one to ask.

    Raises:
        LaunchError: nobody here can tell which process it is, or it is another user's.
    """
    if trainer_alive(run) is None:
        raise LaunchError(
            t("{run} is not a run of this machine and boot: stop it where it runs", run=run.name)
        )
    try:
        return signal_trainer(run)
    except PermissionError:
        raise LaunchError(t("the trainer of {run} belongs to another user", run=run.name)) from None
