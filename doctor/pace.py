"""How often a run is sampled and its stacks are looked at, so that it costs the run next to nothing. Pure.

What is spent is measured against what the run's own processes get: where cores are free a hundredth or two of it is
unseen; where they are not, every CPU-second of ours is one that the training does not get.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

STACKS_SHARE, STACKS_SHARE_FREE = 0.006, 0.02
"""Of the CPU time of the run's processes, for stacks: where cores are fought for, and where one is free."""
TICKS_SHARE = 0.003
"""The same for host and GPU samples."""
LEAST_CORES, MOST_CORES = 0.0015, 0.04
"""Of one core, whatever the run gets: below, nothing could be told; above, nobody would learn more."""
LONGEST_PAUSE_S = 45.0
"""So the newest minute holds a window, as many looks as a verdict takes."""
BURST_S = 0.25
"""CPU-seconds that are spent before the first pause: two windows or three, so that a run of half a minute has a verdict too."""
LEAST_LOOKS = 32
"""Of a window: a few are lost, and 30 are what a verdict takes."""
SLOWEST = 2
LONGEST_TICK_S = 5.0
CONTENDED = 0.5
"""Seconds spent waiting for a core, for each second of running, from which on cores are fought for."""
KEPT = 0.8
"""Of a running mean, when a new value comes in."""


def starting_rate(threads: int) -> int:
    """Return samples a second for a tree of ``threads`` OS threads: a look reads every thread's /proc entry.

    Measured: 160 idle native threads cost 22 % of a core at 100 Hz, so 10 Hz stays near 2 % there.
    """
    return 10 if threads <= 200 else 5 if threads <= 500 else SLOWEST


@dataclass
class Pace:
    """Begins without pauses; each window and each tick that it hears of sets when the next one comes."""

    rate: int = 10
    shortest_s: int = 5
    pause_s: float = 0.0
    """Between two windows of stacks."""
    least_pause_s: float = 0.0
    tick_s: float = 1.0
    """Between two samples of host and GPUs."""
    run_cores: float = 1.0
    """Cores' worth of CPU that the run's processes get: a running mean."""
    is_contended: bool = True
    least_cores: float = LEAST_CORES
    least_looks: int = LEAST_LOOKS
    """A person who looks on is worth more cores, and waits for fewer looks."""
    _tick_cpu_s: float | None = None
    _waited: tuple[int, int] | None = field(default=None, repr=False)
    _credit_s: float = BURST_S
    """What windows may still cost before the next pause: a running account."""
    _fastest: int = field(init=False)

    def __post_init__(self) -> None:
        self._fastest = self.rate

    @property
    def window_s(self) -> int:
        return max(self.shortest_s, math.ceil(self.least_looks / self.rate))

    @property
    def budget(self) -> float:
        """CPU-seconds a second that stacks may take."""
        share = STACKS_SHARE if self.is_contended else STACKS_SHARE_FREE
        return min(MOST_CORES, max(self.least_cores, share * self.run_cores))

    def hear_run(self, cpu_pct: object) -> None:
        """Take in what the run's processes used since the last sample (100: one core)."""
        if isinstance(cpu_pct, (int, float)):
            self.run_cores = KEPT * self.run_cores + (1 - KEPT) * cpu_pct / 100

    def hear_queue(self, schedstat: str) -> None:
        """Take in our own /proc/PID/schedstat: how long we ran, how long we waited for a core to run on."""
        # 1290381746 20938427 1533
        try:
            ran, waited = (int(word) for word in schedstat.split()[:2])
        except ValueError:
            return
        before, self._waited = self._waited, (ran, waited)
        if before is not None and ran > before[0]:
            self.is_contended = (waited - before[1]) / (ran - before[0]) > CONTENDED

    def learn_window(self, cpu_s: float, wall_s: float) -> None:
        """Adjust to what the last window cost: by a pause after it, beyond the longest by a lower rate."""
        earned_s = self.budget * (wall_s + self.pause_s)
        credit_s = min(BURST_S, self._credit_s + earned_s) - cpu_s
        wanted = max(0.0, -credit_s / self.budget)
        self._credit_s = max(credit_s, -LONGEST_PAUSE_S * self.budget)
        self.pause_s = min(LONGEST_PAUSE_S, max(self.least_pause_s, wanted))
        if wanted > LONGEST_PAUSE_S and self.rate > SLOWEST:
            affordable = self.rate * self.budget * (wall_s + LONGEST_PAUSE_S) / cpu_s
            self.rate = max(SLOWEST, min(self.rate - 1, int(affordable)))
        elif wanted < LONGEST_PAUSE_S / 2 and self.rate < self._fastest:
            self.rate += 1

    def learn_tick(self, cpu_s: float) -> None:
        """Adjust to what one sample of host and GPUs cost."""
        before = cpu_s if self._tick_cpu_s is None else self._tick_cpu_s
        self._tick_cpu_s = KEPT * before + (1 - KEPT) * cpu_s
        share = max(LEAST_CORES / 2, TICKS_SHARE * self.run_cores)
        self.tick_s = min(LONGEST_TICK_S, max(1.0, self._tick_cpu_s / share))
