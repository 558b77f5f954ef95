"""A run as Prometheus text (exposition format 0.0.4): what it does now, one line a value. What is not known has no line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from runner.events import amount, number, whole
from runner.state import RunState
from runner.verdict import verdict_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATUSES = (
    "starting",
    "running",
    "stalled",
    "stopped",
    "interrupted",
    "completed",
    "failed",
    "non-finite",
    "lost",
    "damaged",
)
KINDS = ("data", "launch", "compute", "memory", "throttled", "ranks", "evaluating", "saving", "logging", "copying",
         "cpu-limit", "hung", "still", "unknown")  # fmt: skip

_Row = tuple[str, dict[str, str], float]

_STEP = {"loss": "loss", "lr": "learning_rate", "grad_norm": "gradient_norm", "epoch": "epoch"}
_RANK = {"step": "rank_step", "step_seconds": "rank_step_seconds", "own_seconds": "rank_own_seconds",
         "tokens_per_s": "rank_tokens_per_second", "samples_per_s": "rank_samples_per_second",
         "last_t": "rank_last_word_timestamp_seconds"}  # fmt: skip
_GPU = {"utilization_pct": 0.01, "memory_activity_pct": 0.01, "memory_used_bytes": 1, "memory_total_bytes": 1,
        "temperature_c": 1, "power_w": 1, "power_limit_w": 1, "sm_clock_mhz": 1e6,
        "pcie_rx_bytes_per_s": 1, "pcie_tx_bytes_per_s": 1, "nvlink_rx_bytes_per_s": 1, "nvlink_tx_bytes_per_s": 1,
        "nvlink_errors": 1, "sm_active_pct": 0.01, "tensor_active_pct": 0.01}  # fmt: skip
_UNITS = {"utilization_pct": "utilization_ratio", "memory_activity_pct": "memory_activity_ratio",
          "temperature_c": "temperature_celsius", "power_w": "power_watts", "power_limit_w": "power_limit_watts",
          "sm_clock_mhz": "sm_clock_hertz", "sm_active_pct": "sm_active_ratio", "tensor_active_pct": "tensor_active_ratio",
          "pcie_rx_bytes_per_s": "pcie_rx_bytes_per_second", "pcie_tx_bytes_per_s": "pcie_tx_bytes_per_second",
          "nvlink_rx_bytes_per_s": "nvlink_rx_bytes_per_second", "nvlink_tx_bytes_per_s": "nvlink_tx_bytes_per_second"}  # fmt: skip


def metrics_text(name: str, state: RunState, status: str, now: float) -> str:
    """Return every value that is known of a run; ``now`` is wall time in seconds since the epoch."""
    lines: list[str] = []
    told: set[str] = set()
    rows = sorted(_rows(state, status, now), key=lambda row: row[0])  # a metric's lines stand together
    for metric, labels, value in rows:
        if metric not in told:
            told.add(metric)
            lines.append(f"# TYPE doctor_{metric} gauge")
        shown = ",".join(f'{key}="{_escaped(word)}"' for key, word in {"run": name, **labels}.items())
        lines.append(f"doctor_{metric}{{{shown}}} {_figure(value)}")
    return "\n".join([*lines, ""])


def _rows(state: RunState, status: str, now: float) -> Iterator[_Row]:
    yield from _one_of("status", "status", STATUSES, status)
    yield from _one_of("verdict", "kind", KINDS, verdict_of(state, status, now).kind)
    yield from (("alert", {"kind": alert.kind}, 1.0) for alert in state.alerts.open())
    yield "step", {}, float(state.step)
    if state.steps_total is not None:
        yield "steps_planned", {}, float(state.steps_total)
    if state.last_trainer_t is not None:
        yield "trainer_last_word_timestamp_seconds", {}, state.last_trainer_t
    for key, metric in _STEP.items():
        if (value := number(state.last.get(key))) is not None:
            yield metric, {}, value
    for curve, metric in (
        (state.samples_per_s, "samples_per_second"),
        (state.tokens_per_s, "tokens_per_second"),
    ):
        if curve.values:
            yield metric, {}, curve.values[-1]
    for key, curve in {"loss": state.eval_loss, **state.metrics}.items():
        if curve.values:
            yield "evaluation", {"metric": key}, curve.values[-1]
    yield from (
        ("step_split_seconds", {"part": part}, seconds) for part, seconds in state.split_seconds.items()
    )
    yield from _ranks(state)
    yield from _xids(state)
    yield from _machine(state)


def _ranks(state: RunState) -> Iterator[_Row]:
    """Of several processes each one's newest steps; nothing where one trains alone."""
    for row in state.ranks.rows():
        labels = {"rank": str(row["rank"])}
        for key, metric in _RANK.items():
            if (value := number(row.get(key))) is not None:
                yield metric, labels, value


def _xids(state: RunState) -> Iterator[_Row]:
    """When each kind of Xid came last, and whether anybody could see one: without that no line says nothing."""
    if state.xid_source:
        yield (
            "xids_watched",
            {"source": str(state.xid_source.get("source", ""))},
            float("source" in state.xid_source),
        )
    newest: dict[tuple[str, str, str], float] = {}
    for xid in state.xids:
        card = whole(xid.get("gpu_index"), None)
        key = ("" if card is None else str(card), str(xid.get("number", "")), str(xid.get("fault", "")))
        newest[key] = max(newest.get(key, 0.0), amount(xid.get("at")) or 0.0)
    for (gpu, name, fault), at in newest.items():
        yield "gpu_xid_timestamp_seconds", {"gpu": gpu, "xid": name, "fault": fault}, at


def _machine(state: RunState) -> Iterator[_Row]:
    for key, metric, scale in (
        ("cpu_pct", "process_cpu_cores", 0.01), ("rss_bytes", "process_resident_bytes", 1.0),
        ("memory_used_bytes", "host_memory_used_bytes", 1.0), ("memory_limit_bytes", "host_memory_limit_bytes", 1.0),
        ("disk_free_bytes", "run_disk_free_bytes", 1.0), ("cpu_throttled_pct", "cpu_throttled_ratio", 0.01),
    ):  # fmt: skip
        if (value := number(state.host.get(key))) is not None:
            yield metric, {}, value * scale
    if "seen_at" in state.gpus:  # what the cards were before is no reading of now
        return
    for card in state.gpus.get("gpus") or ():
        yield from _card(card)


def _card(card: dict[str, Any]) -> Iterator[_Row]:
    labels = {"gpu": str(card.get("index", "?")), "name": str(card.get("name", ""))}
    for key, scale in _GPU.items():
        if (value := number(card.get(key))) is not None:
            yield "gpu_" + _UNITS.get(key, key), labels, value * scale
    for reason in card.get("throttle_reasons") or ():
        yield "gpu_throttled", {**labels, "reason": str(reason)}, 1.0


def _one_of(metric: str, label: str, words: Sequence[str], current: str) -> Iterator[_Row]:
    for word in words if current in words else (*words, current):
        yield metric, {label: word}, float(word == current)


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _figure(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.15g}"
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
