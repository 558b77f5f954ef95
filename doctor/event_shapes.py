"""What an event must look like before anything is made of it: a run directory may be another user's, or damaged. Pure.

A value of a wrong kind is left out, as if it had not been written; an event whose time is no time is left out whole. Keys
that nobody here knows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec

from runner.events import RunEvent

# As runner.events.finite_or_name writes them.
Number = float | Literal["nan", "inf", "-inf"] | None
Amount = Annotated[float, msgspec.Meta(ge=0)] | None
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] | None
LATEST_T = 2e11
"""Seconds since the epoch that a calendar can still name."""
LARGEST_STEP = 1 << 53
LONGEST_WORDS = 20_000
"""Characters."""
_IN_WORDS = frozenset(
    (
        "note",
        "run-started",
        "run-finished",
        "evaluation",
        "checkpoint",
        "on-finish",
        "memory",
        "xid",
        "sample-xids",
        "standing",
    )
)


class _Shape(msgspec.Struct):
    """Known keys and their kinds; every one may be missing."""


class _Started(_Shape):
    device: str | None = None
    precision: str | None = None
    steps_total: Count = None
    epochs: Number = None
    samples_total: Number = None
    resumed_from_step: Count = None
    model: str | None = None
    torch: str | None = None
    parameters: int | None = None
    pid: int | None = None
    hostname: str | None = None
    world_size: Count = None
    command: str | list[str] | None = None
    attempt: int | None = None


class _Step(_Shape):
    loss: Number = None
    lr: Number = None
    grad_norm: Number = None
    samples: Amount = None
    tokens: Amount = None
    padded_tokens: Amount = None
    epoch: Number = None
    seconds: Number = None
    split: dict[str, Number] | None = None
    non_finite: Count = None
    steps_total: Count = None


class _Memory(_Shape):
    device: str | None = None
    samples: Count = None
    length: Count = None
    measured_bytes: Count = None
    predicted_bytes: Count = None
    worst_bytes: Count = None
    process_bytes: Count = None
    why: Any = None
    parted: bool | None = None


class _Preparing(_Shape):
    what: str | None = None
    part: str | None = None
    rows: Count = None
    rows_total: Count = None
    tokens: Count = None
    seconds: Number = None
    rows_per_s: Number = None
    characters_per_s: Number = None
    eta_seconds: Number = None


class _Checkpoint(_Shape):
    path: str | None = None
    seconds: Number = None
    bytes: int | None = None
    reason: str | None = None


class _Sentence(msgspec.Struct):
    msgid: str
    params: dict[str, str | int | float] = {}


class _Note(_Shape):
    level: str | None = None
    text: str | _Sentence | None = None
    file: str | None = None


class _Finished(_Shape):
    outcome: str | None = None
    steps: int | None = None
    seconds: Number = None
    exit_code: int | None = None
    error: str | None = None
    final_dir: str | None = None
    metrics: dict[str, Number] | None = None


class _OnFinish(_Shape):
    state: str | None = None
    command: str | None = None
    at: float | None = None
    exit_code: int | None = None


class _Host(_Shape):
    cpu_pct: Number = None
    rss_bytes: Number = None
    memory_used_bytes: Number = None
    memory_limit_bytes: Number = None
    memory_scope: str | None = None
    processes: Number = None
    threads: Number = None
    blocked: Count = None
    paused: Count = None
    disk_free_bytes: Number = None
    cpu_cores_usable: Number = None
    cpu_throttled_pct: Number = None
    disk_read_bytes_per_s: Number = None
    disk_write_bytes_per_s: Number = None
    network_rx_bytes_per_s: Number = None
    network_tx_bytes_per_s: Number = None
    shm_used_bytes: Number = None
    shm_size_bytes: Number = None
    unread: dict[str, Any] | None = None


class _Card(msgspec.Struct):
    index: int | None = None
    name: str | None = None
    utilization_pct: Number = None
    memory_activity_pct: Number = None
    memory_used_bytes: Number = None
    memory_total_bytes: Number = None
    temperature_c: Number = None
    temperature_slowdown_c: Number = None
    ecc_uncorrected_volatile: Number = None
    mig_enabled: bool | None = None
    power_w: Number = None
    power_limit_w: Number = None
    sm_clock_mhz: Number = None
    throttle_reasons: list[str] | None = None
    pcie_rx_bytes_per_s: Number = None
    pcie_tx_bytes_per_s: Number = None
    nvlink_rx_bytes_per_s: Number = None
    nvlink_tx_bytes_per_s: Number = None
    nvlink_errors: Number = None
    sm_active_pct: Number = None
    tensor_active_pct: Number = None
    unread: dict[str, Any] | None = None


class _Gpu(_Shape):
    gpus: list[_Card] | None = None


class _Xid(_Shape):
    number: Count = None
    fault: str | None = None
    meaning: str | None = None
    pci: str | None = None
    at: Annotated[float, msgspec.Meta(ge=0, le=LATEST_T)] | None = None
    line: str | None = None
    gpu_index: Count = None
    is_ours: bool | None = None


class _Xids(_Shape):
    source: str | None = None


class _Frame(msgspec.Struct):
    function: str = ""
    file: str = ""
    line: int | None = None
    self_share: Number = None
    total_share: Number = None


class _Place(msgspec.Struct):
    phase: str
    function: str
    file: str
    line: int
    share: Number = None


class _Stacks(_Shape):
    samples: int | None = None
    errors: int | None = None
    frames: list[_Frame] | None = None
    looks: Amount = None
    gil_share: Number = None
    gil_main_share: Number = None
    phases: dict[str, Number] | None = None
    places: list[_Place] | None = None


class _Wait(msgspec.Struct):
    pid: int | None = None
    state: str | None = None
    call: str | None = None


class _Standing(_Shape):
    file: str | None = None
    place: str | None = None
    dumps: Count = None
    waits: list[_Wait] | None = None


class _Evaluating(_Shape):
    done: Count = None
    total: Count = None


_SHAPES: dict[str, type[_Shape]] = {
    "run-started": _Started,
    "step": _Step,
    "checkpoint": _Checkpoint,
    "memory": _Memory,
    "preparing": _Preparing,
    "note": _Note,
    "run-finished": _Finished,
    "on-finish": _OnFinish,
    "sample-host": _Host,
    "sample-gpu": _Gpu,
    "sample-xids": _Xids,
    "xid": _Xid,
    "sample-stacks": _Stacks,
    "standing": _Standing,
    "evaluating": _Evaluating,
}


def sound_events(events: Iterable[RunEvent]) -> Iterator[RunEvent]:
    """Yield ``events`` with nothing in them that is not of its kind."""
    for event in events:
        if 0 <= event.t <= LATEST_T:
            yield _sound(event)


def _sound(event: RunEvent) -> RunEvent:
    data = _sound_data(event.kind, event.data)
    if event.kind in _IN_WORDS and any(_is_long(value) for value in data.values()):
        data = {name: _bounded(value) for name, value in data.items()}
    step = event.step if event.step is None or 0 <= event.step <= LARGEST_STEP else None
    if data is event.data and step == event.step:
        return event
    return msgspec.structs.replace(event, data=data, step=step)


def _is_long(value: Any) -> bool:
    """Return whether words, or what they are filled with, are longer than anyone reads."""
    if isinstance(value, dict):
        return any(_is_long(item) for item in value.values())
    return isinstance(value, str) and len(value) > LONGEST_WORDS


def _bounded(value: Any) -> Any:
    """Return words cut to :data:`LONGEST_WORDS`: a library that puts a whole tensor into its error costs no screen its life."""
    if isinstance(value, dict):
        return {name: _bounded(item) for name, item in value.items()}
    return value[:LONGEST_WORDS] + " …" if _is_long(value) else value


def _sound_data(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    if kind == "evaluation":
        plain = {
            name: value for name, value in data.items() if isinstance(value, (int, float, str, type(None)))
        }
        return data if len(plain) == len(data) else plain
    shape = _SHAPES.get(kind)
    if shape is None or _fits(data, shape):
        return data
    kinds = {field.name: field.type for field in msgspec.structs.fields(shape)}
    return {name: value for name, value in data.items() if name not in kinds or _fits(value, kinds[name])}


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True
