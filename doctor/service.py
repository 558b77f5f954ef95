"""The verbs: what both faces (commands and the TUI) may ask. Neither decides anything; the deciding is below
here.

Imports stay inside the functions: ``doctor check`` must not pay for what ``doctor run`` needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doctor.bench_command import CommandBenchOptions
    from doctor.bench_records import Comparison as BenchComparison
    from doctor.bench_runs import BenchOptions
    from doctor.apply import Applied, Confirm, Tell
    from doctor.article_formula import Comparison
    from doctor.command_run import CommandOptions
    from doctor.corrections import Measurement
    from doctor.cure import Proposal, Turn
    from doctor.environments import EnvironmentList
    from doctor.expectations import Expected
    from doctor.explain import Explanation
    from doctor.fleet import FleetReport, Member
    from doctor.journal import Journal
    from doctor.launch import StartedRun
    from doctor.lint.rewrites import Proposal as LintProposal
    from doctor.lint.rewrites import Rewritten
    from doctor.measuring import Measured
    from doctor.memory_plan import MemoryPlan
    from doctor.model import Change, Finding, Fix, JournalEntry, Report, Snapshot, Step
    from doctor.model_config import FoundConfig
    from doctor.model_export import OnnxOptions
    from doctor.model_work import Source
    from doctor.planning import PlanOptions
    from doctor.process_watch import ProcessWatcher
    from doctor.prove import Proved
    from doctor.pyspy import Sample
    from doctor.recommend import Recommendation
    from doctor.replay import Replay
    from doctor.restore_commands import Options
    from doctor.running import PlannedRun
    from doctor.snapshots.capture import Patch
    from doctor.snapshots.diff import Diff
    from doctor.snapshots.fit import Fit, Obstacle
    from doctor.snapshots.formats import Rendered
    from doctor.snapshots.known_good import KnownEnvironment
    from doctor.snapshots.nearest import Change as SetChange
    from doctor.snapshots.nearest import Nearest
    from doctor.snapshots.project_patch import Project
    from doctor.snapshots.resolved import Resolution
    from doctor.snapshots.restore_plan import RestorePlan
    from doctor.snapshots.verify import Level, Verification
    from doctor.staging import Staged
    from doctor.tuning import Compared, TunedBatch
    from doctor.watching import RunSummary, RunWatcher
    from doctor.wheelhouse import Wheelhouse
    from runner.alert_settings import AlertsSection
    from runner.command_plan import CommandPlan
    from runner.deploy.records import Exported
    from runner.estimate import MemoryRequest
    from runner.rundir import RunDir
    from runner.text import Text

EXPORT_DEADLINE_S = 60.0
"""A snapshot may take its time: it is the last thing done before the machine is given back."""


def examine(python: str | None = None, sections: Iterable[str] | None = None) -> Snapshot:
    """Read this machine and the environment of ``python`` (default: the session's own).

    The checks are loaded while the probes wait, where all sections are read: that is done in order to judge.
    """
    from doctor.checks import all_checks
    from doctor.machine import live_snapshot
    from doctor.probes import Context

    return live_snapshot(Context(python=python), sections, meanwhile=all_checks if sections is None else None)


def examine_deeply(
    snapshot: Snapshot, python: str | None = None, data: str | None = None, limit_s: float | None = None
) -> Snapshot:
    """Return ``snapshot`` with what happens when torch is really used here, and how fast ``data`` is read."""
    from doctor.machine import with_facts
    from doctor.probes import Context
    from doctor.probes.deep import LIMIT_S, probe

    reading = probe(Context(python=python), data, LIMIT_S if limit_s is None else limit_s)
    return with_facts(snapshot, deep=reading)


def examine_for_run(python: str | None = None) -> Snapshot:
    """Read this machine with what the run will stand on: contents of packages, the commit, the changes since.

    Changes that look like they hold a credential are left out: a run directory is copied about.
    """
    from doctor.probes import PROBES
    from doctor.snapshots.capture import credentials_in, without_patches

    snapshot = examine(python, [*PROBES, "provenance"])
    return without_patches(snapshot) if credentials_in(snapshot) else snapshot


def load(path: Path) -> Snapshot:
    """Read a recorded machine. Raises OSError, doctor.machine.BadSnapshot."""
    from doctor.machine import load_snapshot

    return load_snapshot(path)


def judge(snapshot: Snapshot) -> Report:
    from doctor.judge import judge

    return judge(snapshot)


def shareable(snapshot: Snapshot, live: bool) -> Snapshot:
    """Return what of a snapshot may leave this machine; a live one also loses this machine's own names."""
    if live:
        from doctor.snapshots.capture import shareable

        return shareable(snapshot)
    from doctor.redact import redact

    return redact(snapshot)


def explain(text: str, snapshot: Snapshot | None, script: tuple[str, str] | None = None) -> Explanation:
    """Say what an error text means, each cause held against ``snapshot`` and a ``script`` (source, name)."""
    from doctor.explain import explain

    return explain(text, snapshot, script)


def lint(source: str, path: str, snapshot: Snapshot | None) -> list[Finding]:
    """Say what is wrong in a training script; ``snapshot`` gives the versions and the card to judge by.

    Where TorchFix is installed beside us, its rules are asked too.
    """
    from doctor.lint import lint_source
    from doctor.lint.script import decodable
    from doctor.lint.torchfix import is_installed, torchfix_findings

    found = lint_source(source, None, path, snapshot)
    if path.endswith(".ipynb") or not is_installed():
        return found
    return found + torchfix_findings(decodable(source), path, found)


def rewrite_script(
    source: str, path: str, snapshot: Snapshot | None, wanted: Callable[[LintProposal], bool]
) -> Rewritten:
    """Rewrite a training script as far as ``wanted`` says. Raises doctor.lint.rewrites.NotRewritable, ImportError (libcst)."""
    from doctor.lint.rewrites import rewrite_source

    return rewrite_source(source, wanted, None, path, snapshot)


def beside_script(snapshot: Snapshot, script: str, python: str | None = None) -> Snapshot:
    """Return ``snapshot`` with the files that hide modules from ``script``: those of its own folder."""
    import msgspec

    from doctor.machine import with_facts
    from doctor.model import ok
    from doctor.probes import Context
    from doctor.probes.project import probe

    folder, project = Path(script).absolute().parent, snapshot.facts.project
    if project.value is None or str(folder) == project.value.cwd:
        return snapshot
    there = probe(Context(python=python, cwd=folder)).value
    if there is None:
        return snapshot
    seen = msgspec.structs.replace(
        project.value,
        shadowing_files=there.shadowing_files,
        shadowing_folder=there.cwd,
        is_package=there.is_package,
    )
    return with_facts(snapshot, project=ok(seen, project.source))


def judge_for_script(snapshot: Snapshot, source: str, path: str) -> tuple[Snapshot, Report]:
    """Judge a machine for a training script: what the run asks of it, and what is wrong in the script itself."""
    from doctor.purpose import judge_for_script

    return judge_for_script(snapshot, source, path)


def recommend(snapshot: Snapshot, python: str | None = None) -> Recommendation:
    """Say which torch runs on a machine; ``python`` takes the place of its interpreter's version."""
    import msgspec

    from doctor.recommend import recommend, target_of

    target = target_of(snapshot)
    return recommend(msgspec.structs.replace(target, python=python) if python else target)


def recommend_for(
    driver: str | None, cards: Sequence[str], python: str | None
) -> tuple[Recommendation, tuple[str, ...]]:
    """Say which torch runs on a driver and cards given by name; also the names that no table knows."""
    from doctor.recommend import recommend, target_from

    target, unknown = target_from(driver, cards, python)
    return recommend(target), unknown


def with_mirrors(recommendation: Recommendation) -> Recommendation:
    """Ask the mirrors for the best build, over the network, for a few seconds."""
    import msgspec

    from doctor.mirrors import ask_mirrors

    if recommendation.best is None:
        return recommendation
    return msgspec.structs.replace(recommendation, mirrors=ask_mirrors(recommendation.best))


def transformers_for(torch: str, python: str | None = None) -> str | None:
    """Return the transformers requirement that goes with a torch version."""
    from doctor.recommend import matching_transformers

    return matching_transformers(torch, python)


def exit_code(report: Report, fail_on: str) -> int:
    from doctor.judge import exit_code

    return exit_code(report, fail_on)  # type: ignore[arg-type]


# -- runs
# -----------------------------------------------------------------------------------------------------
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


def start_run(planned: PlannedRun, run_dir: Path | None = None) -> StartedRun:
    """Make the run directory and start the trainer and its sampler. Raises doctor.launch.LaunchError."""
    from doctor.running import begin

    return begin(planned, run_dir)


def resume_run(name: str, python: str | None = None, approximate: bool = False) -> StartedRun:
    """Go on with a run from its last checkpoint; ``approximate``: also where that cannot be exact.

    Raises FileNotFoundError, doctor.launch.LaunchError.
    """
    from doctor.running import resume
    from runner.rundir import find_run

    return resume(find_run(name), python, approximate=approximate)


def plan_command(
    argv: Sequence[str], options: CommandOptions, python: str | None = None, snapshot: Snapshot | None = None
) -> tuple[CommandPlan, Snapshot]:
    """Plan a command of the user's own for this machine and the Python that it trains with.

    Raises:
        doctor.launch.LaunchError: there is no such program.
        doctor.probes.target.BadPython: ``python`` is none.
    """
    from doctor.command_run import plan_command, python_of

    found = python_of(argv)
    snapshot = snapshot or examine(python or found)
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
        doctor.bench_runs.BenchError: the profile cannot be trained here.
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
        doctor.bench_runs.BenchError: the command fails as it stands.
    """
    from doctor.bench_command import bench_command
    from doctor.command_run import CommandOptions

    plan, snapshot = plan_command(argv, CommandOptions(), python)
    return bench_command(plan, snapshot, options, tell)


def write_winners(profile: str, overrides: Sequence[str], winners: dict[str, Any], target: Path) -> None:
    """Write a profile with settings that were proven faster. Raises doctor.launch.LaunchError, OSError."""
    from doctor.bench_write import write_winners
    from doctor.running import find_profile

    write_winners(find_profile(profile), overrides, winners, target)


def cancel_on_finish(run: RunDir) -> None:
    """Keep the command of ``--on-finish`` from being run. Raises OSError."""
    run.cancel_on_finish.touch()


def stop_run(name: str) -> bool:
    """Ask a run to save and leave; False: it does not run. Raises FileNotFoundError,
    doctor.launch.LaunchError."""
    from doctor.running import stop
    from runner.rundir import find_run

    return stop(find_run(name))


def list_runs(home: Path | None = None) -> list[RunSummary]:
    """Return the runs under ``home`` (default: DOCTOR_RUNS, else ./runs), newest first."""
    from doctor.watching import list_runs

    return list_runs(home)


def watch_run(name: str) -> RunWatcher:
    """Return what follows a run, live or over: its directory, its name, or ``last``. Raises
    FileNotFoundError."""
    from doctor.watching import RunWatcher
    from runner.rundir import find_run

    return RunWatcher(find_run(name))


def past_of_run(name: str) -> Replay:
    """Return what shows a run as it was at any moment. Raises FileNotFoundError."""
    from doctor.replay import Replay
    from runner.rundir import find_run

    return Replay(find_run(name))


def expectations_of(name: str) -> Expected:
    """Return what a run was expected to take, by its plan. Raises FileNotFoundError."""
    from doctor.expectations import expected_of
    from runner.rundir import find_run

    return expected_of(find_run(name))


def record_stacks(pid: int, seconds: int) -> Sample:
    """Watch a process and its children from outside for ``seconds``."""
    from doctor.probes.process_tree import read_stat
    from doctor.pyspy import record
    from doctor.stacks import starting_rate

    stat = read_stat(pid)
    return record(pid, seconds, starting_rate(stat.threads if stat else 0))


def watch_pid(pid: int, log: Path | None = None) -> ProcessWatcher:
    """Return what follows any process of this machine, and its log. Raises ProcessLookupError, OSError."""
    from doctor.process_watch import ProcessWatcher

    return ProcessWatcher(pid, log)


def trainer_pid(name: str) -> int | None:
    """Return the process that trains a run here; None when it does not run here. Raises FileNotFoundError."""
    from doctor.probes.trainer_of import busiest_python
    from doctor.trainer_pid import lives, read_mark
    from runner.rundir import find_run

    run = find_run(name)
    mark = read_mark(run.trainer_pid)
    if mark is None or not lives(mark):
        return None
    return busiest_python(mark.pid) if run.supervisor_pid.exists() else mark.pid


def report_text(watcher: RunWatcher, form: str) -> str:
    """Return the report of a run that has been polled; ``form`` is html, markdown or json."""
    from doctor.render import run_page
    from doctor.run_page import collect

    forms = {"html": run_page.as_html, "markdown": run_page.as_markdown, "json": run_page.as_json}
    return forms[form](collect(watcher))


def compare_text(a: RunWatcher, b: RunWatcher, form: str, width: int = 100, unicode: bool = True) -> str:
    """Return two runs that have been polled side by side; ``form`` is html, markdown, json or text."""
    from doctor.comparison import compare
    from doctor.render import compare_page
    from doctor.run_page import collect

    found = compare(collect(a), collect(b))
    if form == "text":
        return compare_page.as_text(found, width, unicode)
    forms = {"html": compare_page.as_html, "markdown": compare_page.as_markdown, "json": compare_page.as_json}
    return forms[form](found)


def write_report(watcher: RunWatcher) -> tuple[Path | None, Text | None]:
    """Write RUN/report.html; return its path, or None and the reason."""
    from doctor.run_page import write_page

    return write_page(watcher.run, report_text(watcher, "html"))


# -- more than one machine
# ---------------------------------------------------------------------------------------------
def judge_fleet(members: Sequence[Member]) -> FleetReport:
    """Return where machines differ that should be alike, and what they share."""
    from doctor.fleet import judge_fleet

    return judge_fleet(members)


def gather_fleet(python: str | None, limit_s: float) -> list[Member]:
    """Examine this rank's machine and hand it to rank 0, which gets all of them. Raises LaunchError, BadPython."""
    from doctor.fleet_gather import gather
    from doctor.model_work import interpreter

    return gather(examine_for_run(python), interpreter(python), limit_s)


# -- out of the door
# ---------------------------------------------------------------------------------------------
def find_model(name: str, checkpoint: str = "") -> Source:
    """Return the model that a run, a folder or an ONNX file means. Raises FileNotFoundError, LaunchError."""
    from doctor.model_work import find_source

    return find_source(name, checkpoint)


def export_onnx(
    source: Source, options: OnnxOptions, python: str | None, tell: Callable[[Text], None]
) -> Exported:
    """Write a model's ONNX files, compared with torch. Raises LaunchError, BadPython."""
    from doctor.model_export import export_onnx

    return export_onnx(source, options, python, tell)


def predict(source: Source, request: dict[str, Any], python: str | None) -> Iterator[dict[str, Any]]:
    """Yield what a model answers; see :func:`doctor.model_export.predict`. Raises LaunchError, BadPython."""
    from doctor.model_export import predict

    return predict(source, request, python)


def finished_model(
    source: Source, python: str | None, tell: Callable[[Text], None]
) -> AbstractContextManager[Source]:
    """Return the model as a folder to share, for as long as the context lasts. Raises LaunchError, BadPython."""
    from doctor.model_share import finished

    return finished(source, python, tell)


def files_to_share(source: Source) -> dict[str, Path]:
    """Return what of a finished model is copied or sent, by its name there."""
    from doctor.model_share import files_to_share

    return files_to_share(source)


def copy_model(source: Source, target: Path) -> Path:
    """Copy a finished model to a new folder. Raises LaunchError."""
    from doctor.model_share import copy_model

    return copy_model(source, target)


def upload_model(source: Source, repository: str, public: bool, python: str | None) -> str:
    """Send a finished model to a hub repository; return its address. Raises LaunchError, BadPython."""
    from doctor.model_share import upload_model

    return upload_model(source, repository, public, python)


# -- will it fit
# ---------------------------------------------------------------------------------------------
def model_request(
    name: str, snapshot: Snapshot | None = None, options: PlanOptions | None = None
) -> tuple[FoundConfig, MemoryRequest]:
    """Return a model's configuration and a step with it as asked for by default (batch 32, 512 tokens, 16 bits).

    Raises:
        doctor.model_config.NoConfig: the configuration is neither here nor in the table.
    """
    from doctor.planning import config_of_model, default_precision, default_task, device_of
    from runner.estimate import MemoryRequest

    found = config_of_model(name)
    on_cpu = options is not None and options.on_cpu
    card = device_of(snapshot, options) if snapshot is not None and options is not None else None
    precision = default_precision(on_cpu, card)
    return found, MemoryRequest(config=found.config, task=default_task(found.config), precision=precision)


def profile_request(
    profile: str, overrides: Sequence[str], snapshot: Snapshot, on_cpu: bool = False
) -> tuple[FoundConfig, MemoryRequest]:
    """Return a profile's model and the step that ``doctor run`` would take. Raises as
    :func:`doctor.planning.request_of_profile`."""
    from doctor.planning import request_of_profile

    return request_of_profile(profile, tuple(overrides), snapshot, on_cpu)


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
        doctor.exact_memory.NoTrace: an exact plan was asked for, and the model could not be traced.
    """
    from doctor.planning import PlanOptions, plan_memory
    from doctor.probes import Context

    return plan_memory(found, request, snapshot, options or PlanOptions(), Context().environ, measured)


def options_here(options: PlanOptions, snapshot: Snapshot) -> PlanOptions:
    """Return the options for real steps here: on the CPU where there is no card."""
    from doctor.planning import options_here

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
        doctor.measuring.CannotMeasure: there is no device, or a step could not be run.
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
    """Find the largest micro-batch by trying, and keep it. Raises doctor.measuring.CannotMeasure."""
    from doctor.probes import Context
    from doctor.tuning import tune_here

    return tune_here(request, snapshot, options, Context().environ, limit_s, told)


def plan_memory_of(
    profile: str, overrides: Sequence[str], snapshot: Snapshot
) -> tuple[MemoryPlan | None, Text | None]:
    """Return what a profile's step takes of this machine's card, or why that cannot be told."""
    from doctor.launch import LaunchError
    from doctor.model_config import NoConfig
    from runner.model_shapes import UnknownArchitecture

    try:
        found, request = profile_request(profile, overrides, snapshot)
        return plan_memory(found, request, snapshot), None
    except (NoConfig, LaunchError) as error:
        return None, error.text
    except UnknownArchitecture as error:
        return None, error.problem


def compare_formulas(request: MemoryRequest) -> Comparison:
    """Return what tutorials' formula and accelerate's rule say beside ours. Raises UnknownArchitecture."""
    from doctor.article_formula import compare

    return compare(request)


# -- snapshots
# ------------------------------------------------------------------------------------------------
def export_snapshot(
    output: str | None,
    python: str | None = None,
    run: str | None = None,
    overwrite: bool = False,
    *,
    data: Sequence[str] = (),
    patch: Patch = "refuse",
    share: bool = False,
) -> Path | bytes:
    """Write this machine (or the one a run was started on), redacted, and return the file; its bytes for
    ``-``.

    Raises:
        doctor.snapshots.capture.ExportError: it cannot be read or written, or a patch holds a credential.
        doctor.machine.BadSnapshot: what the run keeps is not a snapshot.
    """
    from doctor.machine import encode_snapshot
    from doctor.snapshots import capture

    if run:
        snapshot = capture.from_run(run, patch=patch, share=share)
    else:
        snapshot = capture.capture(python, data=data, patch=patch, share=share, deadline_s=EXPORT_DEADLINE_S)
    if output == "-":
        return encode_snapshot(snapshot)
    target = Path(output) if output else Path(capture.default_name())
    target = target / capture.default_name() if target.is_dir() else target
    capture.write_snapshot(snapshot, target, overwrite)
    return target


def find_snapshot(name: str) -> tuple[Path, Snapshot]:
    """Return the snapshot of a file, a run directory, or a shipped one's name. Raises as :func:`load`."""
    from doctor.data_files import lock_beside, snapshots_dir

    path = Path(name)
    shipped = snapshots_dir() / f"{name}.json"
    if not path.exists() and "/" not in name and shipped.is_file():
        path = shipped
    snapshot = load(path)
    if snapshot.known_good is None or (lock := lock_beside(path)) is None:
        return path, snapshot
    from doctor.snapshots.known_good import with_lock

    return path, with_lock(snapshot, lock)


def patch_bytes_in(path: Path) -> int:
    """Return how many bytes of patches a snapshot file carries; 0: none, or it is no file. Raises as :func:`load`."""
    if not path.is_file() or b'"patch": ' not in path.read_bytes():
        return 0
    provenance = load(path).facts.provenance.value
    states = [provenance.git, *(one.git for one in provenance.contents)] if provenance else []
    return sum(state.patch_bytes or 0 for state in states if state and state.patch is not None)


def snapshot_named(name: str, python: str | None = None) -> Snapshot:
    """Return the snapshot of a file, a run, a shipped one's name, or of ``here`` (redacted like a file).

    Raises:
        OSError, doctor.machine.BadSnapshot: as :func:`load`.
        doctor.snapshots.capture.ExportError: there is no such run.
    """
    from doctor.snapshots import capture

    if name == "here":
        return capture.capture(python, patch="as-is", deadline_s=EXPORT_DEADLINE_S)
    if (Path(name) / "plan.json").is_file() or (not Path(name).exists() and capture.is_run_name(name)):
        return capture.from_run(name, patch="as-is")
    return find_snapshot(name)[1]


def diff_snapshots(a: str, b: str, python: str | None = None) -> Diff:
    """Hold two snapshots against each other; each is a file, a run, a shipped name or ``here``."""
    from doctor.snapshots.diff import diff

    return diff(snapshot_named(a, python), snapshot_named(b, python), a, b)


def verify_snapshot(
    name: str,
    level: Level = "record",
    python: str | None = None,
    tell: Callable[[str, int, int], None] | None = None,
    proof_of: str | None = None,
    tell_proof: Callable[[Text], None] = print,
) -> Verification:
    """Hold this environment against a snapshot, down to ``level``. ``tell(package, done, total)`` while files are read.

    At the level ``proof`` the steps of the run or profile ``proof_of`` (default: the run that ``name`` is) are trained.
    """
    import msgspec

    from doctor.probes import Context
    from doctor.restore_nearest import kept_changes
    from doctor.snapshots.nearest import explained
    from doctor.snapshots.verify import verify

    reference, here = snapshot_named(name), snapshot_named("here", python)
    target = Context(python=python).target
    checked = None
    if level in ("files", "proof"):
        from doctor.probes.rehash import check_files

        checked = check_files(target.site_packages, tell)
    found = explained(verify(reference, here, level, checked), kept_changes(target.prefix))
    if level != "proof":
        return found
    from doctor.verify_proof import repeat_proof

    proof = repeat_proof(reference, here, proof_of or name, str(target.executable or ""), tell_proof)
    return msgspec.structs.replace(found, proof=proof)


def fit_snapshot(
    name: str,
    target: str | None = None,
    driver: str | None = None,
    cards: Sequence[str] = (),
    python: str | None = None,
    glibc: str | None = None,
) -> Fit:
    """Say whether a machine (a snapshot, ``here``, or what the options describe) can take a snapshot's environment."""
    from doctor.snapshots.fit import described_target, fit

    machine = snapshot_named(target) if target else described_target(driver, cards, python, glibc)
    return fit(snapshot_named(name), machine)


def convert_snapshot(name: str, form: str) -> Rendered:
    """Return a snapshot in another tool's format. Raises doctor.snapshots.formats.FormatError."""
    from doctor.snapshots.formats import convert

    return convert(snapshot_named(name), form)


def write_text(text: str, target: Path, overwrite: bool = False) -> None:
    """Write a file whole or not at all. Raises doctor.snapshots.capture.ExportError."""
    from doctor.snapshots.capture import write_file

    write_file(text.encode("utf-8", "surrogateescape"), target, overwrite)


def plan_restore(name: str, torch_index: str | None = None) -> RestorePlan:
    """Return how a snapshot's environment is made again. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.snapshots.formats.sources import TORCH_INDEX
    from doctor.snapshots.restore_plan import plan_restore

    return plan_restore(snapshot_named(name), (torch_index.rstrip("/") + "/") if torch_index else TORCH_INDEX)


def restore_python(plan: RestorePlan, given: str | None = None) -> Path:
    """Return the interpreter to restore with. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.probes import Context
    from doctor.restore_python import find_python

    return find_python(plan.python, given, Context())


def restore_commands(plan: RestorePlan, folder: Path, python: Path, options: Options) -> list[list[str]]:
    """Return every command of a restore in order, for showing."""
    from doctor.restore_commands import install_argv, venv_argv

    return [
        venv_argv(python, folder, options.uv),
        *(install_argv(phase, folder, options) for phase in plan.phases),
    ]


def restore_options(
    consents: Sequence[str] = (),
    find_links: Sequence[str] = (),
    no_index: bool = False,
    installer: str | None = None,
    untested: bool = False,
) -> Options:
    """Return how to install; ``installer`` is pip or uv, None: uv where it asks the same indexes as pip."""
    from doctor.probes import Context
    from doctor.restore_commands import Options, our_uv
    from doctor.restore_python import choose_uv

    uv = our_uv() if installer == "uv" else None if installer == "pip" else choose_uv(Context())
    links = tuple(one if "://" in one else str(Path(one).absolute()) for one in find_links)
    return Options(consents=tuple(consents), find_links=links, no_index=no_index, uv=uv, untested=untested)


def may_restore(plan: RestorePlan, options: Options) -> None:
    """Raise doctor.snapshots.restore_plan.RestoreError where the plan wants a yes that was not given."""
    from doctor.restore import may_restore

    may_restore(plan, options)


def nearest_set(
    name: str, python: Path, options: Options, torch_index: str | None, tell: Callable[[str], None]
) -> Nearest:
    """Return the nearest set that can be had and runs here. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.probes import Context
    from doctor.probes.index_config import read_indexes
    from doctor.restore_nearest import find_nearest
    from doctor.snapshots.fit import MACHINE
    from doctor.snapshots.formats.sources import TORCH_INDEX

    where = (torch_index.rstrip("/") + "/") if torch_index else TORCH_INDEX
    here, lines = examine(str(python), (*MACHINE, "python")), read_indexes(Context(), None, {})
    return find_nearest(snapshot_named(name), here, python, options, lines, where, tell)


def plan_nearest(nearest: Nearest, torch_index: str | None = None) -> RestorePlan:
    """Return how a nearest set is made. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.snapshots.formats.sources import TORCH_INDEX
    from doctor.snapshots.restore_plan import plan_restore

    return plan_restore(nearest.snapshot, (torch_index.rstrip("/") + "/") if torch_index else TORCH_INDEX)


def check_project(name: str, folder: Path) -> None:
    """Raise doctor.snapshots.restore_plan.RestoreError unless the snapshot's changes apply to ``folder``."""
    from doctor.restore_project import check_project

    check_project(snapshot_named(name), folder)


def restore_project(name: str, folder: Path) -> Project:
    """Make the snapshot's changes to the code in ``folder``. Raises as :func:`check_project`."""
    from doctor.restore_project import restore_project

    return restore_project(snapshot_named(name), folder)


def restore_snapshot(
    name: str,
    plan: RestorePlan,
    folder: Path,
    python: Path,
    options: Options,
    tell: Callable[[str], None],
    changes: Sequence[SetChange] = (),
) -> Verification:
    """Make the environment in ``folder`` and verify it by content. Raises RestoreError, KeyboardInterrupt.

    ``changes``: how the plan is another set than the snapshot's, for verify to say again.
    """
    from doctor.restore import restore
    from doctor.restore_nearest import keep_changes

    folder = folder.absolute()
    restore(plan, folder, python, options, tell)
    if changes:
        keep_changes(folder, changes)
    return verify_snapshot(name, "record", str(folder))


def resolve_snapshot(name: str, output: str | None, overwrite: bool = False) -> tuple[Path, Resolution]:
    """Ask the indexes for each wheel's address and digest, and write the snapshot that knows them.

    ``output`` None: beside the file, as ``NAME-resolved.json``.

    Raises:
        doctor.resolve.ResolveError: the indexes could not be asked.
        doctor.snapshots.capture.ExportError: it cannot be written.
    """
    import os

    from doctor.probes import Context
    from doctor.probes.index_config import read_indexes
    from doctor.resolve import resolve
    from doctor.snapshots.capture import write_snapshot

    path, snapshot = find_snapshot(name)
    target = Path(output) if output else Path(f"{path.stem}-resolved.json")
    public = [
        line for line in read_indexes(Context(), None, {}) if line.url.startswith(("http://", "https://"))
    ]
    found = resolve(snapshot, public, dict(os.environ))  # a folder of this machine is nowhere else
    write_snapshot(found.snapshot, target, overwrite)
    return target, found


def credentials_named(name: str) -> list[str]:
    """Return the names of variables that were set there and hold credentials; no snapshot keeps their values."""
    from doctor.redact_secrets import is_credential_variable
    from runner.strings import shown

    environment = snapshot_named(name).facts.environment.value
    return [shown(one) for one in environment.names if is_credential_variable(one)] if environment else []


def unfit_here(name: str | Snapshot) -> list[Obstacle]:
    """Return what makes this machine unable to take a snapshot, whatever Python runs the doctor."""
    from doctor.snapshots.fit import MACHINE, fit

    here = examine(sections=MACHINE)
    snapshot = snapshot_named(name) if isinstance(name, str) else name
    return [one for one in fit(snapshot, here).obstacles if one.level == "fail"]


def show_snapshot_lines(snapshot: Snapshot, name: str, width: int) -> list[str]:
    from doctor.render.snapshot_text import snapshot_lines

    return snapshot_lines(snapshot, name, width)


def known_snapshots() -> list[tuple[str, Path, str]]:
    """Return name, file and label of every snapshot that ships with the doctor."""
    from doctor.data_files import snapshots_dir

    paths = sorted(snapshots_dir().glob("*.json"))
    return [(path.stem, path, load(path).label) for path in paths]


def known_environments() -> list[KnownEnvironment]:
    """Return every snapshot that ships with the doctor, with what it wants of a machine."""
    from doctor.snapshots.known_good import known_environment

    return [known_environment(name, str(path), load(path)) for name, path, _ in known_snapshots()]


def local_snapshots(folder: Path = Path()) -> list[tuple[Path, str]]:
    """Return file and label of every snapshot in ``folder``, newest first; other JSON files are passed over."""
    from doctor.machine import BadSnapshot

    found: list[tuple[float, Path, str]] = []
    for path in folder.glob("*.json"):
        try:
            label = load(path).label
            found.append((path.stat().st_mtime, path, label))
        except (OSError, BadSnapshot):
            continue
    return [(path, label) for _, path, label in sorted(found, reverse=True)]


# -- environments
# ---------------------------------------------------------------------------------------------
def list_environments() -> EnvironmentList:
    """Find every Python environment on this machine and judge each."""
    from doctor.environments import list_environments
    from doctor.probes import Context

    return list_environments(Context())


def collect_wheels(
    folder: Path, extras: Sequence[str], python: str | None, options: Sequence[str]
) -> Wheelhouse:
    """Download rundoctor and what it needs into ``folder``. Raises doctor.wheelhouse.WheelhouseError."""
    from doctor.probes import Context
    from doctor.wheelhouse import collect

    return collect(folder, extras, Context(python=python), options)


# -- the cure
# -------------------------------------------------------------------------------------------------
def plan_fix(
    snapshot: Snapshot, report: Report, names: Sequence[str] = (), everything: bool = False
) -> list[Proposal]:
    """Return what would be done about the findings named (``ID``, ``ID:SUBJECT``), else about fails and warnings."""
    from doctor.cure import proposals

    return proposals(report, snapshot, names, everything)


def plan_environment(folder: Path, python: str | None, index_url: str | None) -> Fix | Text:
    """Return how a fresh environment for this machine is made, or why no torch fits it."""
    from doctor.cure import with_index_url
    from doctor.model import Fix
    from doctor.new_environment import recommended_environment
    from doctor.probes import Context
    from runner.text import t

    target = Context(python=python).target
    snapshot = examine(python, ("host", "driver", "gpus", "python", "platform", "container"))
    if target.executable is None:
        return t("there is no Python here to make an environment with")
    found = recommended_environment(snapshot, str(folder), str(target.executable), target.version or None)
    return with_index_url(found, index_url) if isinstance(found, Fix) and index_url else found


def preview_step(step: Step, live: bool = True) -> list[str]:
    """Return a step's exact commands or difference, as lines. Reads, never writes; not ``live``: reads nothing."""
    from doctor.apply import preview

    return preview(step, live)


def way_back(step: Step) -> Text | None:
    """Return why a step cannot be undone; None: it can."""
    from doctor.apply import cannot_undo

    return cannot_undo(step)


def is_done_already(fix: Fix) -> bool:
    """Return whether new shells have all that a fix would set; this session may not have read it yet."""
    from doctor.apply import is_done_already

    return is_done_already(fix)


def change_machine(waiting: Callable[[str], None] | None = None) -> AbstractContextManager[Journal]:
    """Hold the journal alone, for :func:`apply_fix` and :func:`undo`. Raises doctor.journal.JournalError."""
    from doctor.journal import locked

    return locked(waiting=waiting)


def apply_fix(journal: Journal, fix: Fix, confirm: Confirm, tell: Tell) -> Applied:
    """Carry out a fix, each step written down before it is done. Raises doctor.journal.JournalError."""
    from doctor.apply import apply_fix

    return apply_fix(journal, fix, confirm, tell)


def check_again(
    snapshot: Snapshot,
    report: Report,
    fix: Fix,
    variables: Mapping[str, str | None],
    python: str | None = None,
) -> tuple[Snapshot, Report, list[Turn]]:
    """Read what a fix touched, judge again, and say how the findings fared.

    ``variables`` are all that were set since the session began (None: unset): new shells have them, this one has not.
    """
    from doctor.cure import look_again, turns

    fresh = look_again(snapshot, fix.touches, variables, python)
    judged = judge(fresh)
    return fresh, judged, turns(report, judged, [fix.id])


def undo(journal: Journal, name: str, tell: Tell) -> Text | None:
    """Take back a change (``3``) or a step of it (``3.2``); return why not, None: done. Raises LookupError."""
    from doctor.apply import undo

    return undo(journal, name, tell)


def finish(journal: Journal, change: Change, confirm: Confirm, tell: Tell) -> Applied:
    """Go on with a change that was cut off."""
    from doctor.apply import finish

    return finish(journal, change, confirm, tell)


def stage_data(data: Path, to: Path | None, tell: Callable[[int, int], None]) -> Staged:
    """Put a data set on the fastest disk with room (or ``to``). Raises doctor.staging.StageError, OSError."""
    from doctor.stage_disk import folder_for
    from doctor.staging import files_of, stage

    source = data.absolute()
    if to is None:
        size = sum(info.st_size for info in files_of(source).values())
        to = folder_for(examine(sections=("platform", "storage")), source, size)
    return stage(source, to.absolute() if source.is_file() else to.absolute() / source.name, tell)


def drop_change(journal: Journal, change: Change) -> None:
    """Forget a change: it can no longer be undone, and what was kept of it is freed. Raises OSError."""
    from doctor.apply import drop

    drop(journal, change)


def half_done_changes() -> list[Change]:
    """Return the changes that were cut off, unless a doctor is at work just now. Raises JournalError."""
    from doctor.journal import Journal, is_held

    return [] if is_held() else Journal().half_done()


def journal_entries() -> tuple[list[Change], list[JournalEntry], list[Change]]:
    """Return every change, every entry, and the changes that were cut off. Raises doctor.journal.JournalError."""
    from doctor.journal import Journal

    journal = Journal()
    return journal.changes(), journal.entries(), journal.half_done()


__all__ = ["Finding", "Mapping", "examine", "exit_code", "judge", "load"]
