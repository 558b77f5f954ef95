"""One start of the trainer in a run directory: the lock, the plan, the outcome as an event and an exit
code."""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import msgspec

from runner.durable import is_full
from runner.events import EventWriter
from runner.exchange import ExchangeBroken, in_our_words
from runner.forked import leave_to_this_process
from runner.inputs import InputError
from runner.journal import Journal, RankJournal
from runner.plan import Plan, PlanError, decode_plan
from runner.rank_env import RankPlace
from runner.rank_record import RankRecord, stack_file
from runner.rundir import RunDir
from runner.signals import EXIT_SAVED, StopRequest
from runner.text import Text, t

EXIT_COMPLETED, EXIT_FAILED, EXIT_NON_FINITE = 0, 1, 4


def run_session(
    run_path: str,
    resume: bool,
    stop: StopRequest,
    approximate: bool = False,
    place: RankPlace | None = None,
    record: RankRecord | None = None,
) -> int:
    """Train what ``plan.json`` of ``run_path`` says and return the exit code. ``place``: of one of several processes, which
    keeps ``record`` of itself.

    0 completed, 143 stopped by a signal and saved, 1 failed, 4 stopped before a non-finite update.
    """
    run, place = RunDir(Path(run_path).absolute()), place or RankPlace()
    try:
        plan = decode_plan(run.plan.read_bytes())
        lock = take_lock(run) if place.prepares else -1
    except (OSError, PlanError) as error:
        sys.stderr.write(f"{run.path}: {error}\n")
        return EXIT_FAILED
    if lock is None:
        sys.stderr.write(f"{run.path}: another trainer is at work in this run directory\n")
        return EXIT_FAILED
    leave_to_this_process(run.lock, run.path / "trainer.lock")
    try:
        writer = open_events(run, place)
    except OSError as error:
        sys.stderr.write(f"{run.path}: nothing can be written there: {error}\n")
        if lock >= 0:
            os.close(lock)
        return EXIT_FAILED
    journal = Journal(writer) if place.is_first else RankJournal(writer, place.rank)
    try:
        return _train(plan, run, journal, stop, resume, approximate, place, record)
    finally:
        writer.close()
        if lock >= 0:
            os.close(lock)


def open_events(run: RunDir, place: RankPlace) -> EventWriter:
    """Make what a trainer needs in its run directory and return the writer of its events. Raises OSError."""
    run.events.mkdir(exist_ok=True)
    run.checkpoints.mkdir(exist_ok=True)
    if place.is_first and not place.has_parent:
        write_pid(run)
    return EventWriter(run.events / f"{place.source}.jsonl", place.source)


def take_lock(run: RunDir) -> int | None:
    """Return a descriptor that holds the run directory for this process, or None where another one holds it.

    The kernel lets go when the process ends, however it ends. A file system without locks is taken as free.
    """
    descriptor = os.open(run.path / "trainer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        return descriptor
    return descriptor


def write_pid(run: RunDir) -> None:
    """Write ``trainer.pid``, unless whoever started us has: theirs says on which host the number means us."""
    mark = f"{os.getpid()} {start_ticks()}"
    if run.trainer_pid.is_file() and run.trainer_pid.read_text("utf-8", "replace").startswith(mark + " "):
        return
    run.trainer_pid.write_text(mark + "\n")


def start_ticks() -> int:
    """Return when this process began, in clock ticks since boot: field 22 of /proc/self/stat."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Several processes share a machine's cores: whoever starts them gives each its part."""


def environment_notes(plan: Plan, place: RankPlace) -> list[Text]:
    """Return a sentence for every variable that should have been set before Python started and is not."""
    shared = THREADS if place.size > 1 else ()
    different = [
        name
        for name, value in plan.environment.items()
        if name not in shared and os.environ.get(name) != value
    ]
    if not different:
        return []
    return [t("not set as planned before Python started: {names}", names=", ".join(different))]


def _train(
    plan: Plan, run: RunDir, journal: Journal, stop: StopRequest, resume: bool, approximate: bool,
    place: RankPlace, record: RankRecord | None,
) -> int:  # fmt: skip
    started = time.monotonic()
    data: dict[str, Any] = {"outcome": "failed", "exit_code": EXIT_FAILED, "steps": 0}
    for text in environment_notes(plan, place):
        journal.note("warn", text)
    try:
        data |= _outcome(plan, run, journal, stop, resume, approximate, place)
    except Exception as error:  # the run's last words: whatever it was becomes an event and an exit code
        with contextlib.suppress(OSError):  # a log on a full disk; the event says it too
            traceback.print_exc()
        if place.size > 1:
            keep_stack(run, place)
        data |= _told(error)
        if record is not None and isinstance(error, ExchangeBroken):
            record.exchange = error.kind
    journal.write("run-finished", None, **data, seconds=time.monotonic() - started)
    return int(data["exit_code"])


def keep_stack(run: RunDir, place: RankPlace) -> None:
    """Keep where this rank stood when it could not go on, and where its other threads stand."""
    try:
        with open(stack_file(run.path, place.rank), "a") as file:
            traceback.print_exc(file=file)
            file.flush()
            faulthandler.dump_traceback(file)
    except OSError as error:
        sys.stderr.write(f"{run.stacks}: {error}\n")


def _outcome(
    plan: Plan, run: RunDir, journal: Journal, stop: StopRequest, resume: bool, approximate: bool,
    place: RankPlace,
) -> dict[str, Any]:  # fmt: skip
    from runner.nonfinite import NonFiniteError
    from runner.ranks import Ranks
    from runner.signals import Stopped
    from runner.trainer import run_training

    timeout_s, hosts = plan.profile.parallel.timeout_s, list[str]()
    try:
        with in_our_words(place, hosts, timeout_s):
            ranks = Ranks(place, plan.settings.device, timeout_s)
            hosts += ranks.hosts
            finished = run_training(plan, run, journal, stop, resume, approximate, ranks)
            ranks.leave()  # after an error the others are not waited for: they may not come
    except Stopped:
        return {"outcome": "stopped", "exit_code": EXIT_SAVED}
    except NonFiniteError as error:
        journal.note("fail", error.text, error.window + 1)
        return {
            "outcome": "non-finite",
            "exit_code": EXIT_NON_FINITE,
            "steps": error.window,
            **_worded(error.text),
        }
    except InputError as error:
        journal.note("fail", error.problem)
        return _worded(error.problem)
    return {
        "outcome": finished.outcome,
        "exit_code": finished.exit_code,
        "steps": finished.windows,
        "metrics": finished.metrics,
        "final_dir": finished.final_dir,
    }


def _worded(text: Text) -> dict[str, Any]:
    """Return an error both as plain English and as a translatable sentence."""
    return {"error": str(text), "error_text": msgspec.to_builtins(text)}


def _told(error: Exception) -> dict[str, Any]:
    if isinstance(error, ExchangeBroken):
        return {**_worded(error.text), "exchange": error.kind}
    if is_full(error):
        return _worded(t("the disk is full, or the quota used up ({why}): free some room and go on with: doctor run --resume RUN",
                         why=str(error)[:300]))  # fmt: skip
    return _worded(t("{kind}: {message}", kind=type(error).__name__, message=str(error)[:2000]))
