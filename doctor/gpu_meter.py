"""What the GPUs do, as ``sample-gpu`` lists it. NVML itself is asked in a child that can be abandoned."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from runner.text import t

RETRY_S = 60.0


class GpuMeter:
    """One NVML reader kept open; where it cannot answer, the reason, and another try a minute later."""

    def __init__(self, timeout_s: float = 0.8, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._reader: Any = None
        self._retry_at = 0.0
        self._answer: dict[str, Any] = {}

    def sample(self) -> dict[str, Any]:
        """Return ``gpus`` (a dict a card), or ``why`` there are none to show. Never raises."""
        if self._clock() < self._retry_at:
            return self._answer
        self._answer = self._ask()
        if "why" in self._answer:
            self._retry_at = self._clock() + RETRY_S
        return self._answer

    def _ask(self) -> dict[str, Any]:
        return {"why": t("no NVML reader")}

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
