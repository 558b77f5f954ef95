"""What a verdict is made from and what it is: one span of time as three sources saw it, and the shares that count. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from runner.text import Text, t
from runner.window import Window

MIN_STEPS = 5
"""Fewer steps say nothing of a run: the first ones load kernels, fill queues and warm caches."""
MIN_SPAN_S = 3.0
MIN_STACK_LOOKS = 30
"""With 30 looks a true share of one half is seen as 0.32 to 0.68 (95 %): enough for halves, not for tenths."""
MIN_GPU_LOOKS = 5

DATA_SHARE = 0.25
"""A quarter of the time: removing it gains a third more speed. Prefetching loaders show under 5 %."""
DATA_SHARE_STACKS_ALONE = 0.6
"""Without the trainer's clock the stacks are the only witness: then most looks must agree."""
WORKER_SHARE = 0.25
"""Share of looks at the loader's workers at one place from which on that place is what they are busy with."""
SIDE_SHARE = 0.35
"""Evaluating, saving, logging: deliberate work, so it must take much before it is called the bottleneck."""
RANKS_SHARE = 0.4
EXCHANGE_SHARE = 0.15
"""Looks in a collective, of any thread, from which on the exchange between ranks is a witness."""
CONTRADICTED_AT = 0.25
"""Two sources disagree when one sees less than a quarter of the share that the other sees."""
COMPUTE_SHARE = 0.6
GPU_BUSY_PCT = 85.0
GPU_IDLE_PCT = 60.0
"""Between the two a card is neither plainly busy nor plainly waiting. NVML's figure is the share of time with any kernel
on the card, so "idle" is certain and "busy" is not: see POWER_LOW."""
POWER_LOW = 0.4
"""A card that counts as busy and draws under 40 % of its limit runs small kernels, or spins in a collective."""
MEMORY_ACTIVITY_PCT = 60.0
"""Share of time in which device memory was read or written: dense matrix products stay well below."""
THROTTLED_LOOKS = 0.5
"""Share of looks with a thermal or hardware reason; single ones come with every load peak."""
SLOWDOWNS = ("hw-thermal", "sw-thermal", "power-brake", "hw-slowdown")
"""Reasons that mean something is wrong. A power cap alone is how cards normally run under full load."""
CGROUP_THROTTLED_PCT = 25.0
"""Share of scheduler periods in which the container was stopped at its CPU limit."""
CPU_FULL = 0.75
"""Share of the usable cores in use that counts as computing at full width."""
HUNG_SAME_PLACE = 0.95
"""A hung thread stands at one place; a long computation moves."""
HUNG_CPU_CORES = 0.2


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: ``kind`` for programs, ``sentence`` for people."""

    kind: str
    """data, launch, compute, memory, throttled, ranks, evaluating, saving, logging, copying, cpu-limit, hung, still, unknown."""
    sentence: Text
    evidence: tuple[Text, ...] = ()
    advice: Text | None = None
    sources: tuple[str, ...] = ()
    """Which of ``clock stacks gpu host`` had something to say."""

    @property
    def is_known(self) -> bool:
        return self.kind != "unknown"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged."""

    window: Window
    on_gpu: bool | None = None
    """None: nobody said where it computes."""
    silent_s: float | None = None
    """Set where the trainer is called stalled: ``window`` then covers the silence."""
    standing: dict[str, Any] = {}
    """``data`` of the newest ``standing`` event of this silence: what the kernel and the trainer's own dumps say."""
    ranks_told: int | None = None
    """How many processes train together, as the trainer says; None: it does not."""

    @property
    def is_distributed(self) -> bool:
        """Whether several processes are known to train together: the trainer says so, or the stacks show it."""
        return (self.ranks_told or 1) > 1 or self.window.is_distributed

    # -- what each source can be asked
    @property
    def has_clock(self) -> bool:
        return (
            bool(self.window.split_s) and self.window.steps >= MIN_STEPS and self.window.span_s >= MIN_SPAN_S
        )

    @property
    def has_stacks(self) -> bool:
        return self.window.stack_samples >= MIN_STACK_LOOKS

    @property
    def has_gpu(self) -> bool:
        return self.on_gpu is not False and self.window.gpu_looks >= MIN_GPU_LOOKS

    @property
    def gpu_pct(self) -> float | None:
        return self.window.utilization_pct.value if self.has_gpu else None

    @property
    def cpu_share(self) -> float | None:
        cores, usable = self.window.cpu_cores.value, self.window.cores_usable
        return None if cores is None or not usable else cores / usable

    @property
    def compute_share(self) -> float:
        return self.window.split_share("forward", "backward", "optimizer")

    def sources(self) -> tuple[str, ...]:
        has = {"clock": self.has_clock, "stacks": self.has_stacks, "gpu": self.has_gpu,
               "host": self.window.cpu_cores.count > 0}  # fmt: skip
        return tuple(name for name, there in has.items() if there)


def unknown(why: Text, evidence: tuple[Text, ...] = ()) -> Verdict:
    return Verdict(kind="unknown", sentence=why, evidence=evidence)


def disagree(one: Text, other: Text) -> Verdict:
    return Verdict(kind="unknown", sentence=t("cannot tell: the sources disagree"), evidence=(one, other))


def percent(share: float) -> int:
    return round(100 * share)
