"""Trains the first steps of a plan twice, in fresh processes and folders of their own, and keeps what the two gave."""

from __future__ import annotations

import hashlib
import shutil
import socket
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

import runner
from doctor.launch import LaunchError, prepare_run, start_run
from doctor.machine import live_snapshot
from doctor.model import Record, Snapshot
from doctor.probes import Context
from doctor.proof_file import read_record, write_record
from doctor.proofs import Parting, Place, ProofRecord, Trace, comparable, level_of, parting, read_trace
from doctor.running import plan_run, recorded_python
from doctor.visible_gpus import visible_gpus
from runner.plan import Plan, decode_plan, digest_of
from runner.rundir import RunDir, find_run
from runner.signals import EXIT_SAVED
from runner.strings import printable
from runner.text import Text, t

VARIABLE = "DOCTOR_PROOF_STEPS"
TRACE = "proof.jsonl"
DEFAULT_STEPS = 5

Tell = Callable[[Text], None]


class Proved(Record, frozen=True):
    """How a proof came out."""

    record: ProofRecord
    parting: Parting | None = None
    """Where the two starts of now parted; None: they agree to the bit."""
    earlier: ProofRecord | None = None
    """The proof kept in the run before, where it is of the same plan and steps."""
    earlier_parting: Parting | None = None
    """Where today's parts from it; None: it does not."""


def proof_plan(plan: Plan, steps: int) -> Plan:
    """Return ``plan`` that stops and keeps its trace after ``steps``: same schedule, same order, same numbers."""
    environment = {**plan.environment, VARIABLE: str(steps)}
    changed = msgspec.structs.replace(plan, environment=environment, digest="")
    return msgspec.structs.replace(changed, digest=digest_of(changed))


def prove(
    plan: Plan, snapshot: Snapshot, python: str, steps: int, tell: Tell, kept: Path | None = None
) -> Proved:
    """Train ``steps`` steps twice and compare; ``kept`` is the run's proof.json, read before and written after.

    Raises:
        LaunchError: a start fails; its last words are in the sentence.
    """
    traces = []
    for number in (1, 2):
        tell(t("start {number} of 2: {steps} {steps:step|steps}", number=number, steps=steps))
        traces.append(trace_once(proof_plan(plan, steps), snapshot, python))
    found = parting(*traces)
    record = ProofRecord(
        made_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        plan_digest=plan.digest,
        steps=steps,
        sha256=traces[0].sha256,
        place=place_of(snapshot, plan),
        lines=traces[0].lines,
    )
    earlier = read_record(kept) if kept is not None else None
    record = msgspec.structs.replace(record, level=level_of(found is None, earlier, record))
    if earlier is not None and not comparable(earlier, record):
        earlier = None
    earlier_parting = parting(Trace(lines=earlier.lines), traces[0]) if earlier is not None else None
    if kept is not None and found is None and earlier_parting is None:
        write_record(kept, record)
    return Proved(record=record, parting=found, earlier=earlier, earlier_parting=earlier_parting)


def trace_once(plan: Plan, snapshot: Snapshot, python: str) -> Trace:
    """Train in a folder of its own, which is gone afterwards, and return what it computed. Raises LaunchError."""
    folder = Path(tempfile.mkdtemp(prefix="doctor-prove-"))
    try:
        run = prepare_run(plan, snapshot, folder / "run")
        started = start_run(run, python, with_sampler=False)
        try:
            code = started.process.wait()
        except BaseException:  # Ctrl-C: the start is ours alone, and nobody wants its checkpoint
            started.process.kill()
            started.process.wait()
            raise
        if code not in (0, EXIT_SAVED):
            raise LaunchError(
                t("the training ended with status {code}: {words}", code=code, words=last_words(run))
            )
        return _read(run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _read(run: RunDir) -> Trace:
    try:
        trace = read_trace((run.path / TRACE).read_bytes())
    except FileNotFoundError:
        trace = Trace(lines=())
    if not trace.lines:
        raise LaunchError(
            t("the training made no step, so there is nothing to compare: {words}", words=last_words(run))
        )
    return trace


def last_words(run: RunDir) -> str:
    try:
        lines = run.trainer_log.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        return str(error)
    return printable(" / ".join(line.strip() for line in lines[-3:] if line.strip()))[-400:]


def place_of(snapshot: Snapshot, plan: Plan) -> Place:
    """Return what of a machine decides bits: card, driver, interpreter, packages, threads."""
    facts = snapshot.facts
    packages = facts.packages.value
    names = sorted(f"{item.name}=={item.version}" for item in packages.items) if packages else []
    return Place(
        device=_device(snapshot, plan),
        driver=(facts.driver.value.version or "")
        if facts.driver.value and plan.settings.device == "cuda"
        else "",
        python=(facts.python.value.version or "") if facts.python.value else "",
        torch=facts.torch.value.version if facts.torch.value else "",
        runner_sha256=_runner_sha256(),
        packages_sha256=hashlib.sha256("\n".join(names).encode()).hexdigest() if names else "",
        hostname_hash=hashlib.sha256(socket.gethostname().encode()).hexdigest()[:16],
        threads=plan.settings.threads,
    )


def _runner_sha256() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(runner.__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _device(snapshot: Snapshot, plan: Plan) -> str:
    """Return the card's name; of a CPU its architecture and a hash of what it can do, which chooses the kernels."""
    if plan.settings.device == "cuda":
        cards = visible_gpus(snapshot.facts)
        return cards[0].name if cards else ""
    host = snapshot.facts.host.value
    if host is None:
        return ""
    flags = hashlib.sha256(" ".join(sorted(host.cpu_flags or ())).encode()).hexdigest()[:12]
    return f"{host.cpu_model or host.arch or '?'} ({flags})"


def find_proof(name: str, python: str | None, overrides: Sequence[str]) -> tuple[Plan, str, Path | None]:
    """Return the plan that ``name`` (a run, or a profile) means, who trains it, and where its proof is kept.

    Raises:
        LaunchError: there is neither, or no interpreter is known.
        runner.plan.PlanError, runner.profile.ProfileError: what is there cannot be trained.
    """
    run = _run_named(name)
    if run is None:
        return *_of_profile(name, python, overrides), None
    if overrides:
        raise LaunchError(t("{run} is planned already: --set is for profiles", run=run.name))
    plan = decode_plan(run.plan.read_bytes())
    return plan, python or recorded_python(run), run.path / "proof.json"


def _run_named(name: str) -> RunDir | None:
    if name.endswith(".toml"):
        return None
    try:
        return find_run(name)
    except FileNotFoundError:
        return None


def _of_profile(name: str, python: str | None, overrides: Sequence[str]) -> tuple[Plan, str]:
    planned = plan_run(name, overrides, live_snapshot(Context(python=python)))
    if not planned.python:
        raise LaunchError(t("no Python was found to train with; name one with --python PATH"))
    if planned.missing:
        raise LaunchError(planned.missing[0])
    return planned.plan, planned.python
