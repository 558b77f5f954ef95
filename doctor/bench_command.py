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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from doctor import bench_order
from doctor.bench_command_levers import NAMES, Outside, outside_levers
from doctor.bench_command_pace import Paced, memory_of, pace_of
from doctor.bench_command_rows import rows_of
from doctor.bench_cost import BEFORE as BEFORE_NAME
from doctor.bench_cost import runs_of
from doctor.bench_order import BenchError, Interleaved, OutOfTime, Tell
from doctor.bench_records import Comparison
from doctor.command_run import begin_command
from doctor.launch import LaunchError, StartedRun
from doctor.model import Snapshot
from doctor.render.layout import human_seconds
from runner.command_plan import CommandPlan, sealed
from runner.text import Param, Text, t

__all__ = ["NAMES", "CommandBenchOptions", "bench_command"]

LOOK_EVERY_S = 0.2
GRACE_S = 20.0
"""From asking a command to end to ending it."""
Variant = bench_order.Variant[Outside, Paced]


@dataclass(frozen=True)
class CommandBenchOptions:
    pairs: int = 6
    minutes: float = 20.0
    run_s: float = 120.0
    """A run that takes longer is stopped and judged by its steps until then."""
    levers: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
    """``NAME=VALUE``: variables of the user's own choice, each a lever."""


class CommandBench(Interleaved[Outside, Paced]):
    """Runs one command again and again, under other variables."""

    def __init__(
        self, plan: CommandPlan, snapshot: Snapshot, options: CommandBenchOptions, tell: Tell
    ) -> None:
        super().__init__(options.pairs, options.minutes, tell)
        self.plan, self.snapshot, self.run_s = plan, snapshot, options.run_s
        self._folder = Path(tempfile.mkdtemp(prefix="doctor-bench-"))
        self._count = 0

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def try_before(self) -> None:
        """Run the command once as it is, which does not count: whether it can be compared, and for how long a run is worth it.

        Raises:
            BenchError: it fails as it stands, or tells too little.
            KeyboardInterrupt
        """
        begun, found = time.monotonic(), self.run(None)
        if isinstance(found, Text):
            raise BenchError(found)
        if found.worth_s is not None:
            self.run_s = min(self.run_s, found.worth_s)
        self.cost.took(BEFORE_NAME, min(self.run_s, time.monotonic() - begun))

    def ratio(self, variant: Variant, pair: tuple[Paced, Paced]) -> float:
        before, after = pair
        return after.pace / before.pace

    def told(self, measured: Paced, where: dict[str, Param]) -> Text:
        if measured.by_steps:
            return t("pair {number} of {pairs}: {name}: {pace} steps/s; about {left} to go", pace=f"{measured.pace:.3g}", **where)  # fmt: skip
        return t("pair {number} of {pairs}: {name}: {seconds} s; about {left} to go", seconds=f"{1 / measured.pace:.2f}", **where)  # fmt: skip

    def run(self, variant: Variant | None) -> Paced | Text:
        """Run the command under a variant's variables, until it ends or its time is over; a sentence where that tells nothing.

        Raises:
            OutOfTime: it told too little before the minutes were over.
        """
        self._count += 1
        started = begin_command(
            self._plan(variant), self.snapshot, self._folder / f"{self._count}", with_sampler=False
        )
        try:
            stopped, peak_bytes = self._follow(started)
        except BaseException:  # Ctrl-C: the command is ours alone
            _end(started.process)
            raise
        paced = pace_of(started.run, stopped)
        shutil.rmtree(started.run.path, ignore_errors=True)
        if isinstance(paced, Text) and stopped and not self.time_left_s:
            raise OutOfTime
        return paced if isinstance(paced, Text) else msgspec.structs.replace(paced, peak_bytes=peak_bytes)

    def _follow(self, started: StartedRun) -> tuple[bool, int]:
        """Wait for a run; return whether it was stopped for its time, and the most bytes that one of its processes held."""
        end, stopped, peak_bytes = time.monotonic() + min(self.run_s, self.time_left_s + GRACE_S), False, 0
        while started.process.poll() is None:
            time.sleep(LOOK_EVERY_S)
            peak_bytes = max(peak_bytes, memory_of(started.run))
            if not stopped and time.monotonic() > end:
                stopped = True
                started.process.send_signal(signal.SIGTERM)  # the supervisor sees to it that it ends
        return stopped, peak_bytes

    def _plan(self, variant: Variant | None) -> CommandPlan:
        if variant is None:
            return sealed(self.plan)
        kept = {name: value for name, value in self.plan.environment.items() if name not in variant.lever.without}  # fmt: skip
        return sealed(msgspec.structs.replace(self.plan, environment={**kept, **variant.lever.variables}))


def _end(supervisor: subprocess.Popen[bytes]) -> None:
    """Ask the command to end, have it killed where it does not, and leave nothing of it."""
    for _ in range(2):  # the second request to stop is a supervisor's SIGKILL
        with suppress(ProcessLookupError):
            supervisor.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            supervisor.wait(GRACE_S)
            return
    supervisor.kill()
    supervisor.wait()


def bench_command(plan: CommandPlan, snapshot: Snapshot, options: CommandBenchOptions, tell: Tell) -> Comparison:  # fmt: skip
    """Measure each lever that applies.

    Raises:
        BenchError: the command fails as it stands, or tells too little to be compared.
        KeyboardInterrupt: before anything was measured.
    """
    begun, load = time.monotonic(), os.getloadavg()[0]
    levers = outside_levers(plan, snapshot.facts, os.environ, options.tries, huge_pages())
    if options.levers or options.tries:
        levers = [one for one in levers if one.name in (*options.levers, *options.tries)]
    bench, stopped = CommandBench(plan, snapshot, options, tell), None
    bench.variants = [Variant(one) for one in levers if one.skipped is None]
    try:
        tell(t("first one run that does not count. What the command writes (checkpoints, logs) it writes in every run"))  # fmt: skip
        bench.try_before()
        tell(_cost_words(bench))
        bench.compare(bench.variants)
    except OutOfTime:
        stopped = t("the {minutes} {minutes:minute was|minutes were} over before every pair was measured; --minutes gives it more", minutes=f"{options.minutes:g}")  # fmt: skip
    except KeyboardInterrupt:
        stopped = t("interrupted: what was measured until then is shown")
    except (BenchError, LaunchError) as error:
        if not bench.before:
            raise
        tell(error.text)
        stopped = t("a run that could be made at first failed: what was measured until then is shown")
    finally:
        bench.close()
    rows = rows_of(bench.variants, [one for one in levers if one.skipped])
    return Comparison(
        profile=plan.name, device="", model=plan.command, batch_size=0, max_length=0, steps=0, pairs_wanted=options.pairs, rows=rows,
        is_command=True, winners={name: value for row in rows if row.verdict == "faster" for name, value in row.settings.items()},
        seconds=time.monotonic() - begun, stopped=stopped, load_begin=load, load_end=os.getloadavg()[0], notes=bench.notes,
        by_steps=all(paced.by_steps for paced in bench.before) if bench.before else None,
    )  # fmt: skip


def huge_pages(path: Path = Path("/sys/kernel/mm/transparent_hugepage/enabled")) -> str:
    """Return the kernel's mode: always, madvise, never; empty: it cannot be read."""
    # always [madvise] never
    try:
        return path.read_text().partition("[")[2].partition("]")[0]
    except OSError:
        return ""


def _cost_words(bench: CommandBench) -> Text:
    left = bench.left(bench.variants)
    return t("{settings} {settings:setting|settings}, {pairs} {pairs:pair|pairs} each: {runs} {runs:run|runs} of about {each}, {time} in all; at most "
             "{minutes} {minutes:minute|minutes}. Ctrl-C ends it at any time and shows what was measured",
             settings=len(bench.variants), pairs=bench.pairs_wanted, runs=runs_of(left), each=human_seconds(bench.cost.of(BEFORE_NAME)),
             time=human_seconds(bench.cost.left_s(left)), minutes=f"{bench.given_s / 60:g}")  # fmt: skip
