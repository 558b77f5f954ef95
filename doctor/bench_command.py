"""A command of the user's own compared under other variables: what can be changed from outside, in interleaved pairs.

Each run is supervised in a run directory of its own. Where its log tells steps, steps a second are compared, the first
tenth left out; else the whole run's wall time.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from doctor.bench_command_levers import NAMES, Outside, outside_levers
from doctor.bench_records import Comparison, Row
from doctor.bench_runs import BenchError, OutOfTime, Tell
from doctor.bench_stats import interval_of
from doctor.command_run import begin_command
from doctor.model import Snapshot
from doctor.prove import last_words
from runner.command_plan import CommandPlan, sealed
from runner.events import read_events
from runner.rundir import RunDir
from runner.text import Text, t

__all__ = ["NAMES", "CommandBenchOptions", "bench_command"]

LEAST_STEPS = 5
LOOK_EVERY_S = 0.2
GRACE_S = 20.0


@dataclass(frozen=True)
class CommandBenchOptions:
    pairs: int = 6
    minutes: float = 20.0
    run_s: float = 120.0
    """A run that takes longer is stopped and judged by its steps until then."""
    levers: tuple[str, ...] = ()


class Paced(msgspec.Struct, frozen=True, kw_only=True):
    """How fast one run was: ``pace`` in steps a second, or in runs a second where its log told no steps."""

    pace: float
    by_steps: bool
    steps: int = 0


@dataclass
class Tried:
    lever: Outside
    pairs: list[tuple[Paced, Paced]] = field(default_factory=list)
    failed: Text | None = None


class CommandBench:
    """Runs one command again and again, under other variables."""

    def __init__(
        self, plan: CommandPlan, snapshot: Snapshot, options: CommandBenchOptions, tell: Tell
    ) -> None:
        self.plan, self.snapshot, self.options, self.tell = plan, snapshot, options, tell
        self.before: list[Paced] = []
        self._folder = Path(tempfile.mkdtemp(prefix="doctor-bench-"))
        self._deadline = time.monotonic() + 60 * options.minutes
        self._count = 0

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def compare(self, tried: Sequence[Tried]) -> None:
        """Measure each lever next to a run without it. Raises OutOfTime, KeyboardInterrupt, BenchError."""
        for number in range(self.options.pairs):
            for one in [each for each in tried if each.failed is None]:
                self._pair(one, number)

    def _pair(self, one: Tried, number: int) -> None:
        found: dict[str, Paced] = {}
        for name in ("before", one.lever.name) if number % 2 == 0 else (one.lever.name, "before"):
            paced = self._run(name, one.lever.variables if name != "before" else {}, number)
            if isinstance(paced, Paced):
                found[name] = paced
            elif name == "before":
                raise BenchError(paced)
            else:
                one.failed = paced
                return
        before, after = found["before"], found[one.lever.name]
        self.before.append(before)
        if before.by_steps == after.by_steps:
            one.pairs.append((before, after))

    def _run(self, name: str, variables: Mapping[str, str], number: int) -> Paced | Text:
        if time.monotonic() >= self._deadline:
            raise OutOfTime
        self._count += 1
        plan = sealed(msgspec.structs.replace(self.plan, environment={**self.plan.environment, **variables}))
        started = begin_command(
            plan, self.snapshot, self._folder / f"{self._count}-{name}", with_sampler=False
        )
        begun, stopped = time.monotonic(), False
        try:
            while started.process.poll() is None:
                time.sleep(LOOK_EVERY_S)
                if not stopped and time.monotonic() - begun > self.options.run_s:
                    stopped = True
                    started.process.send_signal(signal.SIGTERM)
        except BaseException:  # Ctrl-C: the command is ours alone
            with suppress(ProcessLookupError):
                started.process.send_signal(signal.SIGTERM)
                _wait(started.process, GRACE_S)
            raise
        paced = pace_of(started.run, stopped)
        shutil.rmtree(started.run.path, ignore_errors=True)
        if isinstance(paced, Paced):
            shown = f"{paced.pace:.3g}"
            words = t("pair {number} of {pairs}: {name}: {pace} steps/s", number=number + 1, pairs=self.options.pairs, name=name, pace=shown)  # fmt: skip
            if not paced.by_steps:
                words = t("pair {number} of {pairs}: {name}: {seconds} s", number=number + 1, pairs=self.options.pairs, name=name, seconds=f"{1 / paced.pace:.2f}")  # fmt: skip
            self.tell(words)
        return paced


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def pace_of(run: RunDir, stopped: bool) -> Paced | Text:
    """Return how fast a run was by its own events; a sentence where it failed or told too little."""
    steps: list[tuple[int, float]] = []
    finished: dict[str, object] = {}
    for path in sorted(run.events.glob("*.jsonl")):
        for event, _ in read_events(path):
            if event.kind == "step" and event.step:
                steps.append((event.step, event.t))
            elif event.kind == "run-finished" and event.source == "log":
                finished = event.data
    if not stopped and finished.get("exit_code") != 0:
        return t("the command ended with status {code}: {words}", code=str(finished.get("exit_code", "?")), words=last_words(run))  # fmt: skip
    steps.sort(key=lambda one: one[1])
    kept = steps[len(steps) // 10 :]
    if len(kept) >= LEAST_STEPS and kept[-1][0] > kept[0][0] and kept[-1][1] > kept[0][1]:
        return Paced(pace=(kept[-1][0] - kept[0][0]) / (kept[-1][1] - kept[0][1]), by_steps=True, steps=kept[-1][0])  # fmt: skip
    seconds = finished.get("seconds")
    if stopped or not isinstance(seconds, (int, float)) or seconds <= 0:
        return t("the run was stopped after its time and its log told too few steps: give --run-seconds more")
    return Paced(pace=1 / float(seconds), by_steps=False)


def bench_command(plan: CommandPlan, snapshot: Snapshot, options: CommandBenchOptions, tell: Tell) -> Comparison:  # fmt: skip
    """Measure each lever that applies. Raises BenchError: the command fails as it stands."""
    begun, load = time.monotonic(), os.getloadavg()[0]
    levers = [one for one in outside_levers(plan, snapshot.facts, os.environ) if not options.levers or one.name in options.levers]  # fmt: skip
    tried = [Tried(one) for one in levers if one.skipped is None]
    bench, stopped = CommandBench(plan, snapshot, options, tell), None
    try:
        bench.compare(tried)
    except OutOfTime:
        stopped = t("the {minutes} {minutes:minute was|minutes were} over before every pair was measured; --minutes gives it more", minutes=f"{options.minutes:g}")  # fmt: skip
    except KeyboardInterrupt:
        stopped = t("interrupted: what was measured until then is shown")
    finally:
        bench.close()
    rows = [_row(one) for one in tried]
    rows += [
        Row(name=one.name, title=one.title, verdict="skipped", why=one.skipped)
        for one in levers
        if one.skipped
    ]
    return Comparison(
        profile=plan.name, device="", model=plan.command, batch_size=0, max_length=0, steps=0, pairs_wanted=options.pairs,
        rows=rows, is_command=True, seconds=time.monotonic() - begun, stopped=stopped, load_begin=load, load_end=os.getloadavg()[0],
        by_steps=all(paced.by_steps for paced in bench.before) if bench.before else None,
    )  # fmt: skip


def _row(one: Tried) -> Row:
    lever = one.lever
    if not one.pairs:
        why = one.failed or t("not reached")
        return Row(name=lever.name, title=lever.title, settings=dict(lever.variables), verdict="failed" if one.failed else "skipped", why=why)  # fmt: skip
    speed = interval_of([after.pace / before.pace for before, after in one.pairs])
    words = {"more": "faster", "less": "slower"}.get(speed.verdict, speed.verdict)
    return Row(
        name=lever.name, title=lever.title, settings=dict(lever.variables), runs=len(one.pairs), speed=speed, verdict=words,  # type: ignore[arg-type]
        why=lever.changes,
    )  # fmt: skip
