"""What in a run needs a person now, folded from events with hysteresis: on only when it lasts, off only when it is well past."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from runner.events import RunEvent, amount, number, rows, whole, words
from runner.text import Text, t

SPIKE_RATIO = 2.0
"""A loss is a spike at twice the median of the 50 before it; noise of small batches stays below."""
SPIKE_STEPS = 3
CALM_RATIO = 1.2
CALM_STEPS = 10
OVERFIT_EVALUATIONS = 3
"""One evaluation above the best is noise; three in a row are a direction."""
OVERFIT_RATIO = 1.05
VRAM_ON, VRAM_OFF = 0.98, 0.95
"""Allocators keep what they once took, so a full card is no harm by itself: only the last 2 % are worth a word."""
LOOKS = 15
THROTTLED_ON, THROTTLED_OFF = 10, 2
"""Of the newest 15 looks."""
HOT_ON_C, HOT_OFF_C = 3.0, 8.0
"""Degrees below the temperature at which the card slows itself down."""
SLOWDOWNS = frozenset(("hw-thermal", "sw-thermal", "power-brake", "hw-slowdown"))
XID_LEVELS = {"hardware": "fail", "link": "warn", "recoverable": "warn"}
REMAPPED = 63
"""The Xid of a memory row that is to be remapped: the card takes care of it."""
DISK_ON_BYTES, DISK_OFF_BYTES = 1 << 30, 3 << 29
DISK_CHECKPOINTS = 2.0
"""Room for two more of the newest checkpoint is too little: one is written before another is removed."""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """``kind``: non-finite, loss-spike, overfitting, vram, throttled, temperature, disk, xid. ``since``: seconds since the epoch."""

    kind: str
    level: str
    text: Text
    since: float


@dataclass
class _Gate:
    """Opens after ``on`` bad looks in a row, closes after ``off`` good ones; a look between the two changes nothing."""

    on: int
    off: int
    bad: int = 0
    good: int = 0
    is_open: bool = False

    def look(self, is_bad: bool, is_good: bool) -> bool:
        """Return whether the gate is open after this look."""
        self.bad = self.bad + 1 if is_bad else 0
        self.good = self.good + 1 if is_good else 0
        if not self.is_open and self.bad >= self.on:
            self.is_open = True
        elif self.is_open and self.good >= self.off:
            self.is_open = False
        return self.is_open


class AlertBook:
    """The alerts that are on now. Stalls are the status's own word and not repeated here."""

    def __init__(self) -> None:
        self._alerts: dict[str, Alert] = {}
        self._non_finite = _Gate(1, 20)
        self._spike = _Gate(SPIKE_STEPS, CALM_STEPS)
        self._overfit = _Gate(OVERFIT_EVALUATIONS, 1)
        self._vram = _Gate(3, 3)
        self._heat = _Gate(3, 3)
        self._disk = _Gate(3, 3)
        self._losses: deque[float] = deque(maxlen=50)
        self._median = 0.0
        self._best_eval = math.inf
        self._train_at_best = math.inf
        self._throttled: deque[bool] = deque(maxlen=LOOKS)
        self._checkpoint_bytes = 0.0

    def open(self) -> list[Alert]:
        """Return the alerts that are on, worst and oldest first."""
        return sorted(self._alerts.values(), key=lambda alert: (alert.level != "fail", alert.since))

    def add(self, event: RunEvent) -> None:
        """Fold one event in."""
        if event.kind == "step":
            self._step(event)
        elif event.kind == "evaluation":
            self._evaluation(event)
        elif event.kind == "sample-gpu":
            self._gpus(event)
        elif event.kind == "sample-host":
            self._host(event)
        elif event.kind == "checkpoint":
            self._checkpoint_bytes = amount(event.data.get("bytes")) or self._checkpoint_bytes
        elif event.kind == "xid":
            self._xid(event)
        elif event.kind in ("run-started", "run-finished"):
            kept = [kind for kind in ("overfitting", "non-finite", "xid") if event.kind == "run-finished"]
            self._alerts = {kind: alert for kind, alert in self._alerts.items() if kind in kept}

    def _set(self, kind: str, is_on: bool, event: RunEvent, level: str, text: Text) -> None:
        if not is_on:
            self._alerts.pop(kind, None)
        elif kind not in self._alerts:
            self._alerts[kind] = Alert(kind=kind, level=level, text=text, since=event.t)

    def _step(self, event: RunEvent) -> None:
        loss = number(event.data.get("loss"))
        if loss is None:
            return
        finite = math.isfinite(loss) and not number(event.data.get("non_finite"))
        if not finite or self._non_finite.is_open:
            is_on = self._non_finite.look(not finite, finite)
            self._set(
                "non-finite",
                is_on,
                event,
                "fail",
                t("the loss is not finite (since step {step})", step=event.step or 0),
            )
        if math.isfinite(loss):
            self._look_for_spike(event, loss)

    def _look_for_spike(self, event: RunEvent, loss: float) -> None:
        full = len(self._losses) == self._losses.maxlen
        if (
            full
            and (not self._median or self._spike.bad == 0)
            and not self._spike.is_open
            and not (event.step or 0) % 10
        ):
            self._median = sorted(self._losses)[len(self._losses) // 2]
        high = full and self._median > 0 and loss > SPIKE_RATIO * self._median
        if high or self._spike.bad or self._spike.is_open:
            is_on = self._spike.look(high, loss < CALM_RATIO * self._median)
            self._set("loss-spike", is_on, event, "warn",
                      t("the loss jumped to {loss}, from about {before} (step {step})",
                        loss=round(loss, 4), before=round(self._median, 4), step=event.step or 0))  # fmt: skip
        if not high:
            self._losses.append(loss)

    def _evaluation(self, event: RunEvent) -> None:
        loss = number(event.data.get("loss"))
        if loss is None or not math.isfinite(loss):
            return
        train = sum(self._losses) / len(self._losses) if self._losses else math.inf
        if loss < self._best_eval:
            self._best_eval, self._train_at_best = loss, train
        worse = loss > OVERFIT_RATIO * self._best_eval and train < self._train_at_best
        is_on = self._overfit.look(worse, loss <= self._best_eval)
        self._set("overfitting", is_on, event, "warn",
                  t("over-fitting: the evaluation loss is {loss}, its best was {best}, and the training loss still falls",
                    loss=round(loss, 4), best=round(self._best_eval, 4)))  # fmt: skip

    def _gpus(self, event: RunEvent) -> None:
        cards = rows(event.data.get("gpus"))
        if not cards:
            return
        shares = [
            (amount(card.get("memory_used_bytes")) or 0.0) / total
            for card in cards
            if (total := amount(card.get("memory_total_bytes")))
        ]
        fullest = max(shares, default=0.0)
        is_on = self._vram.look(fullest >= VRAM_ON, fullest < VRAM_OFF)
        self._set(
            "vram", is_on, event, "warn", t("a GPU's memory is {share} % full", share=round(100 * fullest))
        )
        reasons = sorted(
            {str(name) for card in cards for name in words(card.get("throttle_reasons"))} & SLOWDOWNS
        )
        self._throttled.append(bool(reasons))
        count = sum(self._throttled)
        is_on = count >= THROTTLED_ON or ("throttled" in self._alerts and count > THROTTLED_OFF)
        self._set(
            "throttled", is_on, event, "warn", t("a GPU is throttled: {reasons}", reasons=", ".join(reasons))
        )

        self._temperature(event, cards)

    def _temperature(self, event: RunEvent, cards: list[dict[str, Any]]) -> None:
        pairs = [
            (amount(card.get("temperature_c")), amount(card.get("temperature_slowdown_c"))) for card in cards
        ]
        known = [(limit - now, now, limit) for now, limit in pairs if now is not None and limit]
        if not known:
            return
        room, now, limit = min(known)
        is_on = self._heat.look(room <= HOT_ON_C, room >= HOT_OFF_C)
        self._set("temperature", is_on, event, "warn",
                  t("a GPU is at {now} °C and slows itself down at {limit} °C", now=round(now), limit=round(limit)))  # fmt: skip

    def _xid(self, event: RunEvent) -> None:
        """One is enough: it stays until the run is started anew, and only a worse one takes its place.

        What a program did wrong ends that program by itself, and a number that nobody knows is no fault: both are shown only.
        """
        fault, number_ = str(event.data.get("fault")), whole(event.data.get("number"), 0) or 0
        level, before = XID_LEVELS.get(fault), self._alerts.get("xid")
        if level is None or number_ == REMAPPED or event.data.get("is_ours") is False:
            return
        if before is not None and (before.level == "fail" or level == "warn"):
            return
        card = whole(event.data.get("gpu_index"), None)
        words = t("Xid {number} on GPU {gpu}: {meaning!t}", number=number_, gpu="?" if card is None else card,
                  meaning=str(event.data.get("meaning") or ""))  # fmt: skip
        self._alerts["xid"] = Alert(kind="xid", level=level, text=words, since=event.t)

    def _host(self, event: RunEvent) -> None:
        free = amount(event.data.get("disk_free_bytes"))
        if free is None:
            return
        needed = DISK_CHECKPOINTS * self._checkpoint_bytes
        is_on = self._disk.look(free < max(DISK_ON_BYTES, needed), free > max(DISK_OFF_BYTES, 1.5 * needed))
        self._set("disk", is_on, event, "warn",
                  t("the run's disk has only {free} MB left", free=round(free / 1e6)))  # fmt: skip
