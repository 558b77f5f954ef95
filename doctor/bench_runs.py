"""The short runs of a comparison of a profile: each a fresh process over the same samples, kept on disk as they come."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from doctor import bench_order
from doctor.bench_child import Refused, train_once
from doctor.bench_journal import Journal
from doctor.bench_levers import BEFORE, Lever, Settings, with_settings
from doctor.bench_order import BenchError, Interleaved, OutOfTime, Tell
from doctor.bench_records import Measured
from doctor.bench_rows import Pair, pace
from doctor.launch import prepare_run
from doctor.model import Snapshot
from runner.oom import next_smaller
from runner.plan import MachineFacts, make_plan
from runner.profile import Profile
from runner.text import Param, Text, t

FIRST_STEPS, MOST_STEPS = 8, 512
WORTH_S = 4.0
"""A run's steps take at least so long: a process takes about as long to start, and less is noise."""
TOGETHER = "together"
"""The variant that joins what was proven faster."""
Variant = bench_order.Variant[Lever, Measured]


@dataclass(frozen=True)
class BenchOptions:
    steps: int | None = None
    """Of each run; None: :data:`FIRST_STEPS`, or as many as take :data:`WORTH_S`."""
    pairs: int = 6
    minutes: float = 20.0
    levers: tuple[str, ...] = ()
    """Empty: all that apply."""
    anew: bool = False
    """Take over nothing of a comparison that was broken off."""


class Bench(Interleaved[Lever, Measured]):
    """Measures variants of one profile on this machine. A temporary folder holds runs and token ids while it lasts."""

    def __init__(
        self, profile: Profile, machine: MachineFacts, snapshot: Snapshot, python: str, options: BenchOptions, journal: Journal
        , tell: Tell
    ) -> None:  # fmt: skip
        super().__init__(options.pairs, options.minutes, tell)
        self.profile, self.machine, self.snapshot, self.python = profile, machine, snapshot, python
        self.options = options
        self.journal = journal
        kept = journal.read()
        self.known_steps = options.steps or (kept[-1].steps if kept else None)
        """Asked for, or those of the pairs that were kept; None: the first run will tell."""
        self.steps = self.known_steps or FIRST_STEPS
        self._folder = Path(tempfile.mkdtemp(prefix="doctor-bench-"))
        self._count = 0

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def fit_before(self) -> Measured:
        """Run *before* once, for nothing but to see that it can be and how long it takes; the first of all runs reads cold files.

        Where memory is short, everything is compared in smaller micro-batches, and a note says so.

        Raises:
            BenchError: it cannot be trained at all.
            KeyboardInterrupt
        """
        while isinstance(found := self._train("before", {}), Refused):
            size = make_plan(self.profile, self.machine, "").settings.micro_batch_size
            smaller = next_smaller(size, self.profile.train.batch_size) if found.memory_short else None
            if smaller is None:
                raise BenchError(found.why)
            note = t("before does not fit in micro-batches of {size}: everything is compared in micro-batches of {smaller}", size=size, smaller=smaller)  # fmt: skip
            self.notes = [note]
            self.tell(found.why)
            self.tell(note)
            self.profile = with_settings(self.profile, {"train.micro_batch_size": smaller, "train.accumulation": None})  # fmt: skip
        return found

    def take_over(self, variant: Variant) -> None:
        """Take the pairs that were kept of an earlier, broken-off comparison."""
        asked = (self.steps, variant.lever.name, variant.lever.settings)
        alike = [one for one in self.journal.read() if (one.steps, one.name, one.settings) == asked]
        for one in alike[: self.options.pairs]:
            variant.pairs.append((one.before, one.after))
            if one.before not in self.before:
                self.before.append(one.before)

    def keep(self, variant: Variant) -> None:
        self.journal.keep(self.steps, variant.lever.name, variant.lever.settings, *variant.pairs[-1])

    def ratio(self, variant: Variant, pair: Pair) -> float:
        before, after = pair
        return pace(after, variant.lever.changes) / pace(before, variant.lever.changes)

    def urgency(self, variant: Variant) -> float:
        """Contrasts, which nobody turns, come after the levers."""
        return 0.0 if variant.lever.is_for == "contrast" else self.promise(variant)

    def told(self, measured: Measured, where: dict[str, Param]) -> Text:
        speed = f"{measured.samples_per_s:.2f}"
        return t(
            "pair {number} of {pairs}: {name}: {speed} samples/s; about {left} to go", speed=speed, **where
        )

    def also_left(self) -> dict[str, int]:
        """Return the pairs of what may win together."""
        promising = [one for one in self.variants if one.lever.is_for == "speed" and one.pairs and self.promise(one) > 1]  # fmt: skip
        known = {one.lever.name for one in self.variants}
        return {TOGETHER: self.pairs_wanted} if len(promising) > 1 and TOGETHER not in known else {}

    def run(self, variant: Variant | None) -> Measured | Text:
        """Train one epoch of the few samples in a fresh process; a sentence where that failed.

        Raises:
            OutOfTime: it was still under way when the minutes were over.
        """
        found = self._train(*(variant.lever.name, variant.lever.settings) if variant else ("before", {}))
        if isinstance(found, Measured):
            return found
        if found.ended and not self.time_left_s:
            raise OutOfTime
        return found.why

    def _train(self, name: str, settings: Settings) -> Measured | Refused:
        self._count += 1
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        plan = make_plan(with_settings(self.profile, {**BEFORE, **settings}), self.machine, now)
        run = prepare_run(plan, self.snapshot, self._folder / f"{self._count}-{name}")
        limit_s = self.cost.limit_s(self.time_left_s, is_slow=bool(settings.get("train.compile")))
        try:
            return train_once(run, self.python, str(self._folder / "cache"), limit_s)
        finally:
            shutil.rmtree(run.path, ignore_errors=True)


def steps_worth(tried: Measured) -> int:
    """Return how many steps take :data:`WORTH_S` at the pace of ``tried``: a power of two, so that most days agree on it."""
    steps = FIRST_STEPS
    while steps < MOST_STEPS and steps * tried.wall_s / tried.windows < WORTH_S:
        steps *= 2
    return steps
