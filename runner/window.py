"""What three sources (the trainer's step clock, Python stacks, GPU and host samples) say of a span of time, summed up.

:class:`Windows` keeps the newest minutes in buckets and the whole run in one; both are bounded, and folded from events
like everything else of a run.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from runner.events import RunEvent, number
from runner.phases import phase_of_place

BUCKET_S = 5.0
BUCKETS = 720
"""An hour of buckets: enough for a few steps of a very slow run."""
RECENT_S = 60.0
"""What a run does now: long enough to smooth single steps, short enough to follow a change."""
RECENT_STEPS = 10
"""A slower run is looked at over so many steps instead."""
MAX_PLACES = 200

Place = tuple[str, str, str, int]
"""Phase, function, file, line."""


@dataclass
class Mean:
    """A sum and how many values are in it; ``value`` is None without any."""

    total: float = 0.0
    count: float = 0.0

    def add(self, value: float | None, weight: float = 1.0) -> None:
        if value is not None:
            self.total += value * weight
            self.count += weight

    def merge(self, other: Mean) -> None:
        self.total += other.total
        self.count += other.count

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class Window:
    """Sums over one span of time."""

    # the trainer's own clock
    span_s: float = 0.0
    """Between the trainer's words, steps and what lay between them."""
    steps: int = 0
    split_s: dict[str, float] = field(default_factory=dict)
    evaluation_s: float = 0.0
    saving_s: float = 0.0
    # GPU, of the busiest card at each look
    gpu_looks: int = 0
    utilization_pct: Mean = field(default_factory=Mean)
    memory_activity_pct: Mean = field(default_factory=Mean)
    power_share: Mean = field(default_factory=Mean)
    throttled: Counter[str] = field(default_factory=Counter)
    """Looks at which a card gave this reason."""
    # host
    cpu_cores: Mean = field(default_factory=Mean)
    """Cores' worth of CPU that the run's processes used."""
    cores_usable: float | None = None
    cgroup_throttled_pct: Mean = field(default_factory=Mean)
    """Share of the scheduler's periods in which the container was stopped at its CPU limit."""
    # stacks of the trainer's main thread
    stack_samples: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    """Samples by phase."""
    places: dict[Place, float] = field(default_factory=dict)
    """Samples by place in the user's code; phase "worker": in the loader's workers."""
    top: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """Samples by the function that the main thread was in itself."""
    has_workers: bool = False

    def merge(self, other: Window) -> None:
        """Add ``other``'s sums to these."""
        for name in ("span_s", "steps", "evaluation_s", "saving_s", "gpu_looks", "stack_samples"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in (
            "utilization_pct",
            "memory_activity_pct",
            "power_share",
            "cpu_cores",
            "cgroup_throttled_pct",
        ):
            getattr(self, name).merge(getattr(other, name))
        for name in ("split_s", "phases", "places", "top"):
            mine = getattr(self, name)
            for key, value in getattr(other, name).items():
                mine[key] = mine.get(key, 0.0) + value
        self.throttled.update(other.throttled)
        self.cores_usable = self.cores_usable if other.cores_usable is None else other.cores_usable
        self.has_workers = self.has_workers or other.has_workers

    # -- shares
    def split_share(self, *names: str) -> float:
        """Return the share of the span that the trainer's clock gives to ``names``, 0 to 1."""
        return (
            min(1.0, sum(self.split_s.get(name, 0.0) for name in names) / self.span_s) if self.span_s else 0.0
        )

    def phase_share(self, *names: str) -> float:
        """Return the share of looks at the main thread that saw it in ``names``, 0 to 1."""
        if not self.stack_samples:
            return 0.0
        return min(1.0, sum(self.phases.get(name, 0.0) for name in names) / self.stack_samples)

    def place(self, *phases: str) -> tuple[str, str, int, float] | None:
        """Return (function, file, line, share of looks) of the commonest place of the user's code in ``phases``."""
        found = [(weight, key) for key, weight in self.places.items() if key[0] in phases]
        if not found or not self.stack_samples:
            return None
        weight, (_, function, file, line) = max(found)
        return function, file, line, min(1.0, weight / self.stack_samples)

    # -- one event
    def add_gpus(self, gpus: list[dict[str, Any]]) -> None:
        cards = [card for card in gpus if number(card.get("utilization_pct")) is not None]
        if not cards:
            return
        self.gpu_looks += 1
        busiest = max(cards, key=lambda card: number(card.get("utilization_pct")) or 0.0)
        self.utilization_pct.add(number(busiest.get("utilization_pct")))
        self.memory_activity_pct.add(number(busiest.get("memory_activity_pct")))
        power, limit = number(busiest.get("power_w")), number(busiest.get("power_limit_w"))
        self.power_share.add(power / limit if power is not None and limit else None)
        self.throttled.update(
            {str(reason) for card in cards for reason in card.get("throttle_reasons") or ()}
        )

    def add_host(self, host: dict[str, Any]) -> None:
        cpu_pct = number(host.get("cpu_pct"))
        self.cpu_cores.add(None if cpu_pct is None else cpu_pct / 100)
        self.cores_usable = number(host.get("cpu_cores_usable")) or self.cores_usable
        self.cgroup_throttled_pct.add(number(host.get("cpu_throttled_pct")))

    def add_stacks(self, stacks: dict[str, Any]) -> None:
        frames = [frame for frame in stacks.get("frames") or () if isinstance(frame, dict)]
        looks = number(stacks.get("looks")) or number(stacks.get("samples")) or 0.0
        if not frames or not looks:
            return
        self.stack_samples += looks
        for phase, share in (stacks.get("phases") or _phases_of(frames)).items():
            self.phases[phase] = self.phases.get(phase, 0.0) + (number(share) or 0.0) * looks
        for row in stacks.get("places") or ():
            key = (str(row["phase"]), str(row["function"]), str(row["file"]), int(row["line"]))
            self.places[key] = self.places.get(key, 0.0) + (number(row.get("share")) or 0.0) * looks
        main = [frame for frame in frames if _is_main(frame)]
        for frame in main[:4]:
            place = (str(frame.get("function")), str(frame.get("file")), int(number(frame.get("line")) or 0))
            self.top[place] = self.top.get(place, 0.0) + (number(frame.get("self_share")) or 0.0) * looks
        self.has_workers = self.has_workers or any(
            str(frame.get("process", "")).startswith("worker") for frame in frames
        )
        for table in (self.places, self.top):
            _prune(table)


def _is_main(frame: dict[str, Any]) -> bool:
    return str(frame.get("process", "")).startswith("trainer") and not frame.get("thread")


def _phases_of(frames: list[dict[str, Any]]) -> dict[str, float]:
    """Return the phases that a list of hottest functions shows: what an older sampler wrote. A lower bound."""
    shares: dict[str, float] = {}
    for frame in filter(_is_main, frames):
        phase = phase_of_place(str(frame.get("function")), str(frame.get("file")))
        if phase:
            shares[phase] = max(shares.get(phase, 0.0), number(frame.get("total_share")) or 0.0)
    return shares


def _prune(table: dict[Any, float]) -> None:
    if len(table) > MAX_PLACES:
        for key in sorted(table, key=lambda key: table[key])[: MAX_PLACES // 2]:
            del table[key]


class Windows:
    """The newest hour in buckets, and the whole run."""

    def __init__(self) -> None:
        self.whole = Window()
        self._buckets: deque[tuple[float, Window]] = deque(maxlen=BUCKETS)
        self._source = ""
        self._spoke_at: float | None = None

    def add(self, event: RunEvent) -> None:
        """Fold one event in; of several writers of steps the first rank counts, a callback more than a log."""
        kind = event.kind
        if kind.startswith("sample-"):
            if kind == "sample-gpu":
                self._each(event.t, lambda window: window.add_gpus(event.data.get("gpus") or []))
            elif kind == "sample-host":
                self._each(event.t, lambda window: window.add_host(event.data))
            elif kind == "sample-stacks":
                self._each(event.t, lambda window: window.add_stacks(event.data))
        elif kind == "run-started":
            self._buckets.clear()
            self._spoke_at = event.t
        elif kind in ("step", "evaluation", "checkpoint") and self._counts(event):
            if kind == "step" and not self.whole.steps:  # what was seen before is imports and loading
                self.whole = Window()
                self._buckets.clear()
            self._add_words(event)

    def pause(self) -> None:
        """What was between the last word and the next is not known."""
        self._spoke_at = None

    def _counts(self, event: RunEvent) -> bool:
        if event.kind == "step" and (not self._source or (self._source == "log" and event.source != "log")):
            self._source = event.source
        return event.source == (self._source or event.source)

    def _add_words(self, event: RunEvent) -> None:
        seconds = number(event.data.get("seconds")) or 0.0
        span = seconds if self._spoke_at is None else max(0.0, event.t - self._spoke_at)
        self._spoke_at = event.t
        split = event.data.get("split") or {} if event.kind == "step" else {}
        parts = [(name, number(part) or 0.0) for name, part in split.items()]
        for window in (self.whole, self._bucket(event.t)):
            window.span_s += span
            if event.kind == "step":
                window.steps += 1
                split_s = window.split_s
                for name, part in parts:
                    split_s[name] = split_s.get(name, 0.0) + part
            elif event.kind == "evaluation":
                window.evaluation_s += seconds
            else:
                window.saving_s += min(seconds, span)  # written in the background, a save holds nothing up

    def _each(self, at: float, do: Any) -> None:
        do(self.whole)
        do(self._bucket(at))

    def _bucket(self, at: float) -> Window:
        begin = at // BUCKET_S * BUCKET_S
        if not self._buckets or self._buckets[-1][0] < begin:
            self._buckets.append((begin, Window()))
        return self._buckets[-1][1]

    def recent(self) -> Window:
        """Return the newest minute, or the newest ten steps where they took longer."""
        merged, wanted = Window(), min(RECENT_STEPS, self.whole.steps)
        newest = self._buckets[-1][0] if self._buckets else 0.0
        for begin, window in reversed(self._buckets):
            if newest - begin >= RECENT_S and merged.steps >= wanted:
                break
            merged.merge(window)
        return merged

    def since(self, at: float) -> Window:
        """Return what was seen from ``at`` (seconds since the epoch) on."""
        merged = Window()
        for begin, window in self._buckets:
            if begin >= at:
                merged.merge(window)
        return merged
