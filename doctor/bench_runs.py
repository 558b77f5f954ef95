"""The short runs of a comparison: each a fresh process over the same samples, a variant always next to *before*."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from doctor.bench_levers import BEFORE, Lever, Settings, with_settings
from doctor.bench_records import Measured
from doctor.bench_rows import Pair, pace
from doctor.launch import prepare_run, trainer_environment
from doctor.model import Snapshot
from doctor.prove import last_words
from runner.plan import MachineFacts, decode_plan, make_plan
from runner.profile import Profile
from runner.rundir import RunDir
from runner.text import Text, t

Tell = Callable[[Text], None]
FIRST_LOOKS = 2
"""Pairs of every variant before the fastest come first."""


@dataclass(frozen=True)
class BenchOptions:
    steps: int = 8
    pairs: int = 6
    minutes: float = 20.0
    levers: tuple[str, ...] = ()
    """Empty: all that apply."""


@dataclass
class Variant:
    """One thing to hold against *before*, and what came of it."""

    lever: Lever
    pairs: list[Pair] = field(default_factory=list)
    failed: Text | None = None

    @property
    def promise(self) -> float:
        """The median of its pace by before's, so far."""
        return statistics.median(
            pace(after, self.lever.changes) / pace(before, self.lever.changes) for before, after in self.pairs
        )


class OutOfTime(Exception):  # noqa: N818 - not an error
    """The minutes are over."""


class Bench:
    """Measures variants of one profile on this machine. ``folder`` holds runs and token ids while it lasts."""

    def __init__(
        self, profile: Profile, machine: MachineFacts, snapshot: Snapshot, python: str, options: BenchOptions, tell: Tell
    ) -> None:  # fmt: skip
        self.machine, self.snapshot, self.python, self.options, self.tell = (
            machine,
            snapshot,
            python,
            options,
            tell,
        )
        self.profile = profile
        self.before: list[Measured] = []
        self.variants: list[Variant] = []
        self.deadline = 0.0
        self._folder = Path(tempfile.mkdtemp(prefix="doctor-bench-"))
        self._count = 0

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_unfinished(self) -> bool:
        return any(one.failed is None and len(one.pairs) < self.options.pairs for one in self.variants)

    def compare(self, variants: Sequence[Variant]) -> None:
        """Measure pairs until there are enough of each. Asked again, it goes on where it was. Raises OutOfTime, KeyboardInterrupt.

        After a first look at all of them the fastest come first, so that something is proven also where the time is short.
        """
        while left := [one for one in variants if one.failed is None and len(one.pairs) < self.options.pairs]:
            least = min(len(one.pairs) for one in left)
            if least < FIRST_LOOKS:
                turn = [one for one in left if len(one.pairs) == least]
            else:
                turn = sorted(left, key=lambda one: -one.promise)
            self._around(turn[:2])

    def _around(self, two: Sequence[Variant]) -> None:
        """Measure one or two variants next to one run of *before*; every other time in the opposite order."""
        number = max(len(one.pairs) for one in two)
        waiting: list[tuple[Variant, Measured]] = []
        order = [two[0], None, *two[1:]]
        for variant in order if number % 2 == 0 else order[::-1]:
            measured = self.measure(variant.lever.settings if variant else {}, variant, number)
            if variant is None:
                assert isinstance(measured, Measured), "without before there is nothing to compare with"
                self.before.append(measured)
            elif isinstance(measured, Measured):
                waiting.append((variant, measured))
            else:
                variant.failed = measured
        for variant, measured in waiting:
            variant.pairs.append((self.before[-1], measured))

    def measure(self, settings: Settings, variant: Variant | None, number: int) -> Measured | Text:
        """Train one epoch of the few samples in a fresh process; a sentence where that failed.

        Raises:
            OutOfTime: there is no time left to begin another.
            BenchError: *before* itself fails.
        """
        if time.monotonic() >= self.deadline:
            raise OutOfTime
        name = variant.lever.name if variant else "before"
        self._count += 1
        run = self._prepare(with_settings(self.profile, {**BEFORE, **settings}), f"{self._count}-{name}")
        code = self._run(run)
        try:
            measured = msgspec.json.decode((run.path / "bench.json").read_bytes(), type=Measured)
        except (OSError, msgspec.MsgspecError):
            why = t("the run ended with status {code}: {words}", code=code, words=last_words(run))
            if variant is None:
                raise BenchError(why) from None
            self.tell(t("{name}: {why}", name=name, why=str(why)))
            return why
        finally:
            shutil.rmtree(run.path, ignore_errors=True)
        self.tell(t("pair {number} of {pairs}: {name}: {speed} samples/s", number=number + 1, pairs=self.options.pairs,
                    name=name, speed=f"{measured.samples_per_s:.2f}"))  # fmt: skip
        return measured

    def _prepare(self, profile: Profile, name: str) -> RunDir:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        plan = make_plan(profile, self.machine, now)
        return prepare_run(plan, self.snapshot, self._folder / name)

    def _run(self, run: RunDir) -> int:
        argv = [self.python, "-u", str(run.code / "runner" / "child" / "bench_steps.py"), str(run.path)]
        plan = decode_plan(run.plan.read_bytes())
        # One tokenisation serves all: what decides the ids is the same in every variant.
        environ = trainer_environment(plan, os.environ) | {"DOCTOR_CACHE": str(self._folder / "cache")}
        with open(run.trainer_log, "ab") as log:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True)  # fmt: skip
        try:
            return child.wait()
        except BaseException:  # Ctrl-C: this run is ours alone, and its workers with it
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise


class BenchError(Exception):
    """*Before* cannot be trained. ``text`` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text
