"""What three sources (the trainer's step clock, Python stacks, GPU and host samples) say of one span of time, summed up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from runner.events import amount, rows, table, words
from runner.phases import phase_of_place

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
    blocked: Mean = field(default_factory=Mean)
    """1 for a look at which a process of the run stood in a device or a file system (state D), else 0."""
    paused: Mean = field(default_factory=Mean)
    """1 for a look at which a process of the run was stopped by a signal (state T), else 0."""
    disk_bytes_per_s: Mean = field(default_factory=Mean)
    """What the run's processes read and wrote."""
    network_bytes_per_s: Mean = field(default_factory=Mean)
    """What the container received and sent."""
    # stacks of the trainer's main thread
    stack_samples: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    """Samples by phase."""
    places: dict[Place, float] = field(default_factory=dict)
    """Samples by place in the user's code; phase "worker": in the loader's workers."""
    top: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """Samples by the function that the main thread was in itself."""
    exchange_samples: float = 0.0
    """Looks at which a thread of the trainer, the main one or autograd's, was in a collective."""
    is_distributed: bool = False
    """Its stacks go through data parallel or sharded training."""
    has_workers: bool = False

    def merge(self, other: Window) -> None:
        """Add ``other``'s sums to these."""
        for name in (
            "span_s",
            "steps",
            "evaluation_s",
            "saving_s",
            "gpu_looks",
            "stack_samples",
            "exchange_samples",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in (
            "utilization_pct",
            "memory_activity_pct",
            "power_share",
            "cpu_cores",
            "cgroup_throttled_pct",
            "blocked",
            "paused",
            "disk_bytes_per_s",
            "network_bytes_per_s",
        ):
            getattr(self, name).merge(getattr(other, name))
        for name in ("split_s", "phases", "places", "top"):
            mine = getattr(self, name)
            for key, value in getattr(other, name).items():
                mine[key] = mine.get(key, 0.0) + value
        self.throttled.update(other.throttled)
        self.cores_usable = self.cores_usable if other.cores_usable is None else other.cores_usable
        self.has_workers = self.has_workers or other.has_workers
        self.is_distributed = self.is_distributed or other.is_distributed

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

    def exchange_share(self) -> float:
        """Return the share of looks at which some thread of the trainer was in a collective, 0 to 1."""
        told = self.exchange_samples / self.stack_samples if self.stack_samples else 0.0
        return min(1.0, max(told, self.phase_share("ranks")))

    def place(self, *phases: str) -> tuple[str, str, int, float] | None:
        """Return (function, file, line, share of looks) of the commonest place of the user's code in ``phases``."""
        found = [(weight, key) for key, weight in self.places.items() if key[0] in phases]
        if not found or not self.stack_samples:
            return None
        weight, (_, function, file, line) = max(found)
        return function, file, line, min(1.0, weight / self.stack_samples)

    def standing(self, share: float) -> tuple[str, str, int] | None:
        """Return (function, file, line) where the main thread itself was in at least ``share`` of looks; None: it moves."""
        place, looks = max(self.top.items(), key=lambda item: item[1], default=(None, 0.0))
        return place if looks >= share * self.stack_samples > 0 else None

    # -- one event
    def add_gpus(self, gpus: list[dict[str, Any]]) -> None:
        cards = [card for card in gpus if amount(card.get("utilization_pct")) is not None]
        if not cards:
            return
        self.gpu_looks += 1
        busiest = max(cards, key=lambda card: amount(card.get("utilization_pct")) or 0.0)
        self.utilization_pct.add(amount(busiest.get("utilization_pct")))
        self.memory_activity_pct.add(amount(busiest.get("memory_activity_pct")))
        power, limit = amount(busiest.get("power_w")), amount(busiest.get("power_limit_w"))
        self.power_share.add(power / limit if power is not None and limit else None)
        self.throttled.update({name for card in cards for name in words(card.get("throttle_reasons"))})

    def add_host(self, host: dict[str, Any]) -> None:
        cpu_pct = amount(host.get("cpu_pct"))
        self.cpu_cores.add(None if cpu_pct is None else cpu_pct / 100)
        self.cores_usable = amount(host.get("cpu_cores_usable")) or self.cores_usable
        self.cgroup_throttled_pct.add(amount(host.get("cpu_throttled_pct")))
        for name, mean in (("blocked", self.blocked), ("paused", self.paused)):
            count = amount(host.get(name))
            mean.add(None if count is None else float(count > 0))
        self.disk_bytes_per_s.add(_sum(host, "disk_read_bytes_per_s", "disk_write_bytes_per_s"))
        self.network_bytes_per_s.add(_sum(host, "network_rx_bytes_per_s", "network_tx_bytes_per_s"))

    def add_stacks(self, stacks: dict[str, Any]) -> None:
        frames = rows(stacks.get("frames"))
        looks = amount(stacks.get("looks")) or amount(stacks.get("samples")) or 0.0
        if not frames or not looks:
            return
        self.stack_samples += looks
        self.exchange_samples += (amount(stacks.get("exchange")) or 0.0) * looks
        self.is_distributed = self.is_distributed or stacks.get("distributed") is True
        for phase, share in (table(stacks.get("phases")) or _phases_of(frames)).items():
            self.phases[phase] = self.phases.get(phase, 0.0) + (amount(share) or 0.0) * looks
        for row in rows(stacks.get("places")):
            phase, function, file = (str(row.get(name)) for name in ("phase", "function", "file"))
            key = (phase, function, file, int(amount(row.get("line")) or 0))
            self.places[key] = self.places.get(key, 0.0) + (amount(row.get("share")) or 0.0) * looks
        main = [frame for frame in frames if _is_main(frame)]
        for frame in main[:4]:
            place = (str(frame.get("function")), str(frame.get("file")), int(amount(frame.get("line")) or 0))
            self.top[place] = self.top.get(place, 0.0) + (amount(frame.get("self_share")) or 0.0) * looks
        self.has_workers = self.has_workers or any(
            str(frame.get("process", "")).startswith("worker") for frame in frames
        )
        _prune(self.places)
        _prune(self.top)


def _sum(data: dict[str, Any], *names: str) -> float | None:
    """Return the sum of what is there of ``names``; None: nothing is."""
    values = [value for name in names if (value := amount(data.get(name))) is not None]
    return sum(values) if values else None


def _is_main(frame: dict[str, Any]) -> bool:
    return str(frame.get("process", "")).startswith("trainer") and not frame.get("thread")


def _phases_of(frames: list[dict[str, Any]]) -> dict[str, float]:
    """Return the phases that a list of hottest functions shows: what an older sampler wrote. A lower bound."""
    shares: dict[str, float] = {}
    for frame in filter(_is_main, frames):
        phase = phase_of_place(str(frame.get("function")), str(frame.get("file")))
        if phase:
            shares[phase] = max(shares.get(phase, 0.0), amount(frame.get("total_share")) or 0.0)
    return shares


def _prune(table: dict[Any, float]) -> None:
    if len(table) > MAX_PLACES:
        for key in sorted(table, key=lambda key: table[key])[: MAX_PLACES // 2]:
            del table[key]
